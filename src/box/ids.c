/* Makes the user namespace of an ordinary user's box. */
#include "config.h"

#include "box/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/account.h"
#include "base/buf.h"
#include "base/clean.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/spawn.h"

#define PROGRAMS "/usr/bin:/bin"
#define STATUS_FAILED 100 /* the child's exit status; lower ones are results */

/* Reads a decimal number up to `end`; 0: it is none that an id can be. */
static long
number_of(const char *text, char end)
{
	char *last;
	long n;

	errno = 0;
	n = strtol(text, &last, 10);
	return *text >= '0' && *text <= '9' && *last == end && errno == 0 && n < UINT32_MAX ? n : 0;
}

bool
box_ids_range(const char *text, const char *name, uid_t uid, long *ret_start, long *ret_count)
{
	char line[256], number[24], *start, *count;
	size_t n;

	(void)snprintf(number, sizeof(number), "%ld", (long)uid);
	for (; *text != '\0'; text += n + (text[n] != '\0')) {
		n = strcspn(text, "\n");
		(void)snprintf(line, sizeof(line), "%.*s", (int)(n < 1000 ? n : 1000), text);
		start = strchr(line, ':');
		count = start != NULL ? strchr(start + 1, ':') : NULL;
		if (n >= sizeof(line) || count == NULL)
			continue;
		*start++ = '\0';
		if (strcmp(line, number) != 0 && (name == NULL || strcmp(line, name) != 0))
			continue;
		*ret_start = number_of(start, ':');
		*ret_count = number_of(count + 1, '\0');
		if (*ret_start > 0 && *ret_count > 0)
			return true;
	}
	return false;
}

static bool
find_range(const char *file, long *start, long *count)
{
	const struct passwd *pw = getpwuid(geteuid());
	HR_BUF(b, 1 << 20);

	return hr_path_read(file, &b, NULL) == 0 &&
	       box_ids_range(
		   hr_buf_str(&b), pw != NULL ? pw->pw_name : NULL, geteuid(), start, count);
}

void
box_ids_find(struct box_ids *ids)
{
	HR_FREE char *u = hr_path_which(PROGRAMS, "newuidmap");
	HR_FREE char *g = hr_path_which(PROGRAMS, "newgidmap");

	*ids = (struct box_ids){0};
	ids->many = u != NULL && g != NULL &&
		    find_range("/etc/subuid", &ids->uid_start, &ids->uid_count) &&
		    find_range("/etc/subgid", &ids->gid_start, &ids->gid_count);
}

static int
map_many(const char *program, pid_t pid, long own, long start, long count, struct hr_err *err)
{
	HR_FREE char *path = hr_path_which(PROGRAMS, program);
	char texts[4][24], said[300] = "";
	const char *const argv[] = {
	    path, texts[0], "0", texts[1], "1", "1", texts[2], texts[3], NULL};
	int status;

	if (path == NULL)
		return hr_err_set(err, HR_E_NOTFOUND, "%s is not installed any more", program);
	(void)snprintf(texts[0], sizeof(texts[0]), "%ld", (long)pid);
	(void)snprintf(texts[1], sizeof(texts[1]), "%ld", own);
	(void)snprintf(texts[2], sizeof(texts[2]), "%ld", start);
	(void)snprintf(texts[3], sizeof(texts[3]), "%ld", count);
	status = hr_spawn_wait(argv, said, sizeof(said), err);
	if (status < 0)
		return -1;
	return status == 0 ? 0
			   : hr_err_set(err, HR_E_PERMISSION, "%s: %s (%s)", program, said,
				 hr_exit_words(status));
}

static int
put(pid_t pid, const char *file, const char *text, struct hr_err *err)
{
	char path[64];
	HR_CLOSE int fd = -1;

	(void)snprintf(path, sizeof(path), "/proc/%ld/%s", (long)pid, file);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		return hr_err_sys(err, errno, "write %s", path);
	return 0;
}

int
box_ids_map(const struct box_ids *ids, pid_t pid, struct hr_err *err)
{
	char text[64];

	if (ids->many)
		return map_many("newuidmap", pid, (long)geteuid(), ids->uid_start, ids->uid_count,
			   err) < 0
			   ? -1
			   : map_many("newgidmap", pid, (long)getegid(), ids->gid_start,
				 ids->gid_count, err);
	if (put(pid, "setgroups", "deny", err) < 0)
		return -1;
	(void)snprintf(text, sizeof(text), "0 %ld 1\n", (long)getegid());
	if (put(pid, "gid_map", text, err) < 0)
		return -1;
	(void)snprintf(text, sizeof(text), "0 %ld 1\n", (long)geteuid());
	return put(pid, "uid_map", text, err);
}

/* Runs the child, which waits until its ids are mapped. */
static void __attribute__((noreturn)) inside(box_ids_fn *fn, const void *arg, int sync)
{
	struct hr_err e = {0};
	char go;
	int r = -1;

	if (unshare(CLONE_NEWUSER) != 0)
		(void)hr_err_sys(&e, errno, "make a user namespace");
	else if (hr_fd_write_full(sync, "u", 1, NULL) < 0 || hr_fd_read(sync, &go, 1) != 1)
		_exit(STATUS_FAILED);
	else if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0 ||
		 prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
		(void)hr_err_sys(&e, errno, "become root of the user namespace");
	else
		r = fn(arg, &e);
	(void)hr_fd_write_full(sync, e.msg, strlen(e.msg), NULL);
	_exit(r >= 0 ? r : STATUS_FAILED);
}

int
box_ids_run(box_ids_fn *fn, const void *arg, struct hr_err *err)
{
	char text[sizeof(err->msg)];
	struct box_ids ids;
	int sync[2], status = -1;
	ssize_t n = -1, have = 0;
	pid_t pid;
	int r;

	if (hr_account_is_root())
		return fn(arg, err);
	box_ids_find(&ids);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sync) < 0)
		return hr_err_sys(err, errno, "a socket pair");
	pid = fork();
	if (pid == 0) {
		hr_fd_close(&sync[0]);
		inside(fn, arg, sync[1]);
	}
	r = pid > 0 ? 0 : hr_err_sys(err, errno, "start a process");
	hr_fd_close(&sync[1]);
	/* any other first byte begins the reason why there is no namespace */
	if (r == 0 && (have = hr_fd_read(sync[0], text, 1)) == 1 && text[0] == 'u') {
		r = box_ids_map(&ids, pid, err) == 0 ? hr_fd_write_full(sync[0], "g", 1, err) : -1;
		have = 0;
	}
	have = have > 0 ? have : 0;
	if (r == 0)
		n = hr_fd_read_full(sync[0], text + have, sizeof(text) - 1 - (size_t)have, NULL);
	hr_fd_close(&sync[0]);
	if (pid > 0 && hr_spawn_end(pid, &status) < 0)
		status = -1;
	if (r < 0 || status == 0)
		return r;
	if (WIFEXITED(status) && WEXITSTATUS(status) < STATUS_FAILED)
		return WEXITSTATUS(status);
	have += n > 0 ? n : 0;
	text[have] = '\0';
	return hr_err_set(
	    err, HR_E_SYS, "%s", have > 0 ? text : "the process that copied files was killed");
}

int
box_ids_give(int dir, const char *name, uid_t uid, gid_t gid)
{
	const int flags = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH;

	return (fchownat(dir, name, uid, (gid_t)-1, flags) == 0 || errno == EINVAL) &&
		       (fchownat(dir, name, (uid_t)-1, gid, flags) == 0 || errno == EINVAL)
		   ? 0
		   : -1;
}
