/* The program that bench starts in boxes, and the floor below them.
 *
 *     bench_box now           prints the monotonic clock in ns: the time at which a program runs
 *     bench_box floor DIR     the same in new namespaces, with a /proc and an overlay over /usr,
 *                             whose layers are made in DIR: the least that a box needs */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int
fail(const char *what)
{
	(void)fprintf(stderr, "bench_box: %s: %s\n", what, strerror(errno));
	return 1;
}

static int
now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return printf("%lld\n", (long long)t.tv_sec * 1000000000 + t.tv_nsec) > 0 ? 0 : 1;
}

static int
map_id(const char *file, unsigned id)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC), r;

	if (fd < 0)
		return -1;
	r = dprintf(fd, "0 %u 1\n", id) < 0 ? -1 : 0;
	(void)close(fd);
	return r;
}

static int
map_ids(uid_t uid, gid_t gid)
{
	int fd = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, "deny", 4) != 4)
		return -1;
	(void)close(fd);
	return map_id("/proc/self/uid_map", uid) == 0 && map_id("/proc/self/gid_map", gid) == 0
		   ? 0
		   : -1;
}

static int
floor_of(const char *dir, const char *self)
{
	const uid_t uid = geteuid();
	const gid_t gid = getegid();
	char options[200];
	int status = 1;
	pid_t pid;

	if (chdir(dir) != 0 || mkdir("upper", 0755) != 0 || mkdir("work", 0700) != 0)
		return fail(dir);
	(void)snprintf(options, sizeof(options), "lowerdir=/usr,upperdir=upper,workdir=work%s",
	    uid != 0 ? ",userxattr" : "");
	if (unshare(CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET |
		    CLONE_NEWCGROUP | (uid != 0 ? CLONE_NEWUSER : 0)) != 0 ||
	    (uid != 0 && map_ids(uid, gid) != 0))
		return fail("namespaces");
	pid = fork();
	if (pid == 0) {
		if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		    mount("overlay", "/usr", "overlay", 0, options) == 0 &&
		    mount("proc", "/proc", "proc", 0, NULL) == 0)
			(void)execl(self, self, "now", (char *)NULL);
		_exit(fail("mounts"));
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 ? 0 : 1;
}

int
main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "now") == 0)
		return now();
	if (argc == 3 && strcmp(argv[1], "floor") == 0)
		return floor_of(argv[2], argv[0]);
	(void)fprintf(stderr, "usage: bench_box now | floor DIR\n");
	return 2;
}
