/* box/rest on processes whose root is a tmpfs: as root, and as an ordinary user who has made the
 * namespaces. A file cgroup.procs stands for the control group. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "box/rest.h"
#include "scratch.h"

#define USER 65534

/* ---- the cases, each in a process of the box ---- */

static int
at_rest(void)
{
	return 0;
}

static int
file_open(void)
{
	return open("/d/file", O_RDONLY | O_CREAT, 0600);
}

static int
file_elsewhere(void)
{
	return open("/run/file", O_RDWR | O_CREAT, 0600);
}

static int
path_open(void)
{
	return open("/", O_PATH | O_DIRECTORY);
}

static int
in_directory(void)
{
	return chdir("/d");
}

static int
in_other_directory(void)
{
	return chdir("/run");
}

static int
in_chroot(void)
{
	return chroot("/d");
}

static int
in_namespace(void)
{
	return unshare(CLONE_NEWNS);
}

static int
watch(void)
{
	return inotify_add_watch(inotify_init(), "/d", IN_CREATE);
}

static int
watch_elsewhere(void)
{
	return inotify_add_watch(inotify_init(), "/run", IN_CREATE);
}

static int
watch_nothing(void)
{
	return inotify_init();
}

static int
bind_to(const char *path, size_t skip)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)snprintf(to.sun_path + skip, sizeof(to.sun_path) - skip, "%s", path);
	return bind(fd, (struct sockaddr *)&to,
	    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + skip + strlen(path)));
}

static int
socket_on_root(void)
{
	return bind_to("/d/socket", 0);
}

static int
socket_way_out(void)
{
	return bind_to("/run/../d/socket", 0);
}

static int
socket_elsewhere(void)
{
	return bind_to("/run/socket", 0);
}

static int
socket_abstract(void)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "test-box-rest-%d", (int)getpid());
	return bind_to(name, 1);
}

static int
part_mounted(void)
{
	return mount("/d", "/e", "none", MS_BIND, NULL);
}

static int go[2];

static void *
wander(void *how)
{
	if (unshare(*(int *)how) != 0 || chdir("/d") != 0 ||
	    (*(int *)how == CLONE_FILES && open("/d", O_PATH) < 0))
		_exit(1);
	if (write(go[1], "", 1) == 1)
		(void)pause();
	return NULL;
}

static int
thread_with(int how)
{
	static int flags;
	pthread_t thread;
	char byte;

	flags = how;
	return pipe(go) == 0 && pthread_create(&thread, NULL, wander, &flags) == 0 &&
		       read(go[0], &byte, 1) == 1 && (how != CLONE_FILES || chdir("/") == 0)
		   ? 0
		   : -1;
}

static int
thread_in_directory(void)
{
	return thread_with(CLONE_FS);
}

static int
thread_with_file(void)
{
	return thread_with(CLONE_FILES);
}

static int
zombie(void)
{
	return fork() == 0 ? (_exit(0), 0) : 0;
}

static int master; /* a terminal, opened before the root changes */

/* Becomes the shell of a session: leads it on a terminal. */
static int
shell(const char *name, bool foreground)
{
	int slave;
	pid_t group;

	if (master < 0 || unlockpt(master) != 0)
		return -1;
	slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY);
	(void)prctl(PR_SET_NAME, name);
	if (slave < 0 || dup2(slave, STDIN_FILENO) < 0 || setsid() < 0 ||
	    ioctl(slave, TIOCSCTTY, 0) != 0 || chdir("/d") != 0)
		return -1;
	if (foreground)
		return 0;
	group = fork();
	if (group == 0) {
		/* the end of its session need not end it: nohup ignores that */
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)pause();
		_exit(0);
	}
	(void)signal(SIGTTOU, SIG_IGN);
	return setpgid(group, group) == 0 && tcsetpgrp(slave, group) == 0 ? 0 : -1;
}

static int
shell_of_builtin(void)
{
	const char *line = "/run/line.0123456789abcdef";

	return mkfifo(line, 0600) == 0 && open(line, O_RDONLY | O_NONBLOCK) >= 0
		   ? shell("bash", true)
		   : -1;
}

static int
shell_at_prompt(void)
{
	struct termios modes;

	if (shell("bash", true) != 0 || tcgetattr(STDIN_FILENO, &modes) != 0)
		return -1;
	modes.c_lflag &= ~(tcflag_t)ICANON;
	return tcsetattr(STDIN_FILENO, TCSANOW, &modes);
}

static int
shell_that_works(void)
{
	return shell("bash", true);
}

static int
shell_with_command(void)
{
	return shell("bash", false);
}

static int
other_shell(void)
{
	return shell("dash", true);
}

static const struct {
	int (*act)(void);
	const char *parent; /* name of the parent; NULL: any */
	const char *why;    /* part of the reason; NULL: the root may be exchanged */
	bool first;         /* the first process does it */
	bool long_list;     /* root alone: the list of sockets is too long */
} cases[] = {
    {.act = at_rest},
    {.act = file_open, .why = "open"},
    {.act = file_elsewhere},
    {.act = path_open, .why = "open"},
    {.act = in_directory, .why = "is in /"},
    {.act = in_other_directory},
    {.act = in_chroot, .why = "has a root of its own"},
    {.act = in_namespace, .why = "is in a mount namespace of its own"},
    {.act = watch, .why = "watches files"},
    {.act = watch, .first = true},
    {.act = in_directory, .why = "is in /", .first = true},
    {.act = watch_elsewhere},
    {.act = watch_nothing},
    {.act = socket_on_root, .why = "has a socket"},
    {.act = socket_way_out, .why = "has a socket"},
    {.act = socket_elsewhere},
    {.act = at_rest, .why = "sockets cannot be examined", .long_list = true},
    {.act = socket_abstract},
    {.act = part_mounted, .why = "also mounted at /"},
    {.act = thread_in_directory, .why = "is in /"},
    {.act = thread_with_file, .why = "open"},
    {.act = zombie},
    {.act = shell_at_prompt, .parent = "handrail-sessio"},
    {.act = shell_at_prompt, .parent = "handraild"},
    {.act = shell_at_prompt, .parent = "handrail-bound", .why = "bash (process"},
    {.act = shell_of_builtin, .parent = "handrail-sessio"},
    {.act = shell_that_works, .parent = "handrail-sessio", .why = "bash (process"},
    {.act = shell_with_command, .parent = "handrail-sessio", .why = "bash (process"},
    {.act = other_shell, .parent = "handrail-sessio", .why = "dash (process"},
};

/* ---- the box ---- */

static bool
put(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	return close(fd) == 0 && done;
}

/* Enters a user namespace, unless this is root. */
static int
enter_user(void)
{
	char users[64], groups[64];

	if (getuid() == 0)
		return 0;
	(void)snprintf(users, sizeof(users), "0 %u 1\n", (unsigned)getuid());
	(void)snprintf(groups, sizeof(groups), "0 %u 1\n", (unsigned)getgid());
	return unshare(CLONE_NEWUSER) == 0 && put("/proc/self/uid_map", users) &&
		       put("/proc/self/setgroups", "deny") && put("/proc/self/gid_map", groups)
		   ? 0
		   : -1;
}

/* Becomes the first process of a box, and has a child do the case. No descriptor changes once that
 * has written its number: nothing is frozen here. */
static _Noreturn void
be_first(int n, int out)
{
	pid_t self = getpid(), other;

	/* "x": this machine lets no ordinary user make namespaces */
	if (enter_user() != 0 || unshare(CLONE_NEWNS) != 0)
		_exit(write(out, "x", 1) == 1 ? 0 : 1);
	master = posix_openpt(O_RDWR | O_NOCTTY);
	if (mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("tmpfs", scratch, "tmpfs", 0, NULL) != 0 || chdir(scratch) != 0 ||
	    chroot(".") != 0 || mkdir("d", 0755) != 0 || mkdir("e", 0755) != 0 ||
	    mkdir("run", 0755) != 0 || mount("tmpfs", "run", "tmpfs", 0, NULL) != 0)
		_exit(1);
	if (cases[n].parent != NULL)
		(void)prctl(PR_SET_NAME, cases[n].parent);
	other = fork();
	if (other == 0) {
		if (!cases[n].first &&
		    (cases[n].act() < 0 || write(out, &self, sizeof(self)) != sizeof(self)))
			_exit(1);
		(void)pause();
		_exit(0);
	}
	if (cases[n].first &&
	    (cases[n].act() < 0 || write(out, &self, sizeof(self)) != sizeof(self)))
		(void)kill(other, SIGKILL);
	(void)waitpid(other, NULL, 0); /* a case that cannot be made ends the pipe */
	_exit(1);
}

/* Mounts a directory over that of the list of sockets, with a file without blocks. */
static bool
make_list_long(pid_t first)
{
	char dir[64], list[80];
	int fd = -1;
	bool done;

	(void)snprintf(dir, sizeof(dir), "/proc/%d/net", (int)first);
	(void)snprintf(list, sizeof(list), "%s/unix", dir);
	if (unshare(CLONE_NEWNS) == 0 &&
	    mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) == 0 &&
	    mount("tmpfs", dir, "tmpfs", 0, NULL) == 0)
		fd = open(list, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	done = fd >= 0 && ftruncate(fd, 65 << 20) == 0;
	(void)close(fd);
	return done;
}

/* Returns what box_rest() returns; -2: no box could be made, -3: none is permitted. */
static int
ask(int n, char *why)
{
	char group[64], file[96], pids[64];
	pid_t first, self = 0, task = 0;
	struct hr_err err;
	int out[2], r = -2, got;
	FILE *children;

	if (pipe2(out, O_CLOEXEC) != 0)
		return -2;
	first = fork();
	if (first == 0) {
		(void)setpgid(0, 0);
		(void)close(out[0]);
		be_first(n, out[1]);
	}
	(void)close(out[1]);
	got = (int)read(out[0], &self, sizeof(self));
	(void)snprintf(file, sizeof(file), "/proc/%d/task/%d/children", (int)first, (int)first);
	children = got == sizeof(self) ? fopen(file, "re") : NULL;
	if (children != NULL && fscanf(children, "%d", &task) == 1) {
		(void)snprintf(group, sizeof(group), "/tmp/test-box-rest-%d", (int)getpid());
		(void)snprintf(file, sizeof(file), "%s/cgroup.procs", group);
		(void)snprintf(pids, sizeof(pids), "%d\n%d\n", (int)first, (int)task);
		if (mkdir(group, 0700) == 0 && (!cases[n].long_list || make_list_long(first)) &&
		    put(file, pids))
			r = box_rest(group, first, why, BOX_REST_WHY, &err);
		(void)unlink(file);
		(void)rmdir(group);
	}
	if (children != NULL)
		(void)fclose(children);
	(void)kill(task > 0 ? task : first, SIGKILL); /* the first one waits for the other */
	(void)waitpid(first, NULL, 0);
	(void)close(out[0]);
	return got == 1 ? -3 : r;
}

static void
check_case(int n, bool as_user)
{
	char answer[BOX_REST_WHY + 1] = "";
	int out[2];
	pid_t pid;
	ssize_t len;

	ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		char why[BOX_REST_WHY + 1] = "?";

		if (as_user && geteuid() == 0 &&
		    (setgid(USER) != 0 || setuid(USER) != 0 || prctl(PR_SET_DUMPABLE, 1) != 0))
			_exit(1);
		why[0] = (char)('0' + ask(n, why + 1));
		_exit(write(out[1], why, strlen(why)) > 0 ? 0 : 1);
	}
	(void)close(out[1]);
	len = read(out[0], answer, sizeof(answer) - 1);
	(void)close(out[0]);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_gt((int)len, 0);
	if (as_user && answer[0] == '0' - 3)
		return;
	if (cases[n].why == NULL)
		ck_assert_msg(answer[0] == '1', "case %d: %s", n, answer);
	else
		ck_assert_msg(answer[0] == '0' && strstr(answer, cases[n].why) != NULL,
		    "case %d: %s", n, answer);
}

START_TEST(as_root)
{
	if (geteuid() == 0)
		check_case(_i, false);
}
END_TEST

START_TEST(as_user)
{
	if (!cases[_i].long_list)
		check_case(_i, true);
}
END_TEST

/* A process that cannot be found, and a group that is none, are errors. */
START_TEST(nothing)
{
	char why[BOX_REST_WHY] = "";
	struct hr_err err = {0};

	ck_assert_int_eq(box_rest(scratch, 0x7ffffffe, why, sizeof(why), &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "examine process"));
}
END_TEST

/* Makes the directory one that the user can enter. */
static void
scratch_open(void)
{
	scratch_make();
	ck_assert_int_eq(chmod(scratch, 0711), 0);
}

int
main(void)
{
	const int n = sizeof(cases) / sizeof(cases[0]);
	Suite *s = suite_create("box/rest");
	TCase *tc = tcase_create("all");
	SRunner *r;
	int failed;

	tcase_add_unchecked_fixture(tc, scratch_open, scratch_remove);
	tcase_add_loop_test(tc, as_root, 0, n);
	tcase_add_loop_test(tc, as_user, 0, n);
	tcase_add_test(tc, nothing);
	suite_add_tcase(s, tc);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed > 0;
}
