/* base/spawn: what a program finds when it starts, and what its starter hears of failures. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process/pid.h"
#include "base/process/spawn.h"

static char said[4096];

/* Runs a shell script with the rest of *s as given; its stdout is in `said`. */
static int
run_script(const char *script, struct hr_spawn *s, const struct hr_spawn_fd *more, size_t nmore)
{
	const char *argv[] = {"sh", "-c", script, NULL};
	struct hr_spawn_fd fds[8];
	struct hr_err err = {0};
	int p[2], status;
	ssize_t n;
	pid_t pid;

	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	fds[0] = (struct hr_spawn_fd){p[1], 1};
	if (nmore > 0)
		memcpy(fds + 1, more, nmore * sizeof(*more));
	s->path = "/bin/sh";
	s->argv = argv;
	s->fds = fds;
	s->nfds = nmore + 1;
	pid = hr_spawn(s, &err);
	ck_assert_msg(pid > 0, "%s", err.msg);
	hr_fd_close(&p[1]);
	n = hr_fd_read_full(p[0], said, sizeof(said) - 1, NULL);
	ck_assert_int_ge(n, 0);
	said[n] = '\0';
	hr_fd_close(&p[0]);
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	return status;
}

START_TEST(missing_program_is_an_error_and_no_zombie)
{
	const char *argv[] = {"nothing-here", NULL};
	struct hr_err err = {0};

	ck_assert_int_eq(hr_spawn(
			     &(const struct hr_spawn){
				 .path = "/nonexistent/nothing-here", .argv = argv, .umask = -1},
			     &err),
	    -1);
	ck_assert_int_eq(err.sys, ENOENT);
	ck_assert_ptr_nonnull(strstr(err.msg, "/nonexistent/nothing-here"));
	ck_assert_int_eq(waitpid(-1, NULL, 0), -1);
	ck_assert_int_eq(errno, ECHILD);
}
END_TEST

START_TEST(bad_descriptor_is_an_error)
{
	const char *argv[] = {"true", NULL};
	const struct hr_spawn_fd fd = {987, 4};
	struct hr_err err = {0};

	ck_assert_int_eq(hr_spawn(
			     &(const struct hr_spawn){
				 .path = "true", .argv = argv, .fds = &fd, .nfds = 1, .umask = -1},
			     &err),
	    -1);
	ck_assert_int_eq(err.sys, EBADF);
}
END_TEST

/* 3 and 4 change places, everything else is gone. */
START_TEST(descriptors_cross_and_nothing_else_passes)
{
	struct hr_spawn s = {.umask = -1};
	int a[2], b[2], r;
	char text[8] = "";

	ck_assert_int_eq(pipe2(a, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(b, O_CLOEXEC), 0);
	r = run_script("printf A >&3; printf B >&4; ls /proc/self/fd", &s,
	    (const struct hr_spawn_fd[]){{b[1], 4}, {a[1], 3}}, 2);
	ck_assert_int_eq(r, 0);
	ck_assert_int_eq(read(a[0], text, sizeof(text)), 1);
	ck_assert_int_eq(text[0], 'A');
	ck_assert_int_eq(read(b[0], text, sizeof(text)), 1);
	ck_assert_int_eq(text[0], 'B');
	/* ls: 0 to 4, and the directory it reads */
	ck_assert_str_eq(said, "0\n1\n2\n3\n4\n5\n");
	hr_fd_close(&a[0]);
	hr_fd_close(&a[1]);
	hr_fd_close(&b[0]);
	hr_fd_close(&b[1]);
}
END_TEST

START_TEST(one_that_is_alone_gets_what_is_named)
{
	struct hr_spawn s = {.umask = -1};
	int left = open("/dev/null", O_RDONLY); /* not close-on-exec: as whoever started us may */

	ck_assert_int_ge(left, 3);
	ck_assert_int_eq(dup2(left, 60), 60);
	ck_assert_int_eq(dup2(left, 4), 4);
	ck_assert_int_eq(
	    run_script("ls /proc/self/fd", &s, (const struct hr_spawn_fd[]){{left, 5}}, 1), 0);
	ck_assert_ptr_nonnull(strstr(said, "60\n"));
	s.alone = true;
	ck_assert_int_eq(
	    run_script("ls /proc/self/fd", &s, (const struct hr_spawn_fd[]){{left, 5}}, 1), 0);
	/* ls: its directory is the first free one */
	ck_assert_str_eq(said, "0\n1\n2\n3\n5\n");
	hr_fd_close_from(3);
}
END_TEST

START_TEST(targets_may_overlap_sources)
{
	struct hr_spawn s = {.umask = -1};
	const struct hr_spawn_fd swap[2] = {{48, 47}, {47, 48}};
	int a[2], b[2];
	char c = 0;

	ck_assert_int_eq(pipe2(a, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(b, O_CLOEXEC), 0);
	ck_assert_int_ge(dup3(a[1], 48, O_CLOEXEC), 0);
	ck_assert_int_ge(dup3(b[1], 47, O_CLOEXEC), 0);
	ck_assert_int_eq(
	    run_script("echo A >/proc/self/fd/47; echo B >/proc/self/fd/48", &s, swap, 2), 0);
	ck_assert_int_eq(read(a[0], &c, 1), 1);
	ck_assert_int_eq(c, 'A');
	ck_assert_int_eq(read(b[0], &c, 1), 1);
	ck_assert_int_eq(c, 'B');
}
END_TEST

START_TEST(unnamed_stdio_is_dev_null)
{
	struct hr_spawn s = {.umask = -1};

	ck_assert_int_eq(run_script("readlink /proc/self/fd/0 /proc/self/fd/2", &s, NULL, 0), 0);
	ck_assert_str_eq(said, "/dev/null\n/dev/null\n");
}
END_TEST

START_TEST(signals_start_default_and_open)
{
	struct hr_spawn s = {.umask = -1};
	sigset_t set;

	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGUSR2, SIG_IGN);
	(void)sigfillset(&set);
	ck_assert_int_eq(sigprocmask(SIG_BLOCK, &set, NULL), 0);
	/* but for 32 and 33: they are libc's, which lets nobody set them, and some starters ignore
	 * them */
	ck_assert_int_eq(
	    run_script("while read -r key set; do case $key in SigBlk:|SigIgn:) "
		       "echo $key $((0x$set & ~0x180000000)) ;; esac; done </proc/$$/status",
		&s, NULL, 0),
	    0);
	ck_assert_str_eq(said, "SigBlk: 0\nSigIgn: 0\n");
}
END_TEST

START_TEST(session_group_umask_and_limit)
{
	struct rlimit lim;
	struct hr_spawn s = {.umask = 027, .setsid = true, .nofile = &lim};

	ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &lim), 0);
	lim.rlim_cur = 77;
	ck_assert_int_eq(
	    run_script(
		"set -- $(cat /proc/$$/stat); echo $(($6 == $$)) $(($5 == $$)); umask; ulimit -n",
		&s, NULL, 0),
	    0);
	ck_assert_str_eq(said, "1 1\n0027\n77\n");
	s = (struct hr_spawn){.umask = 0};
	ck_assert_int_eq(run_script("umask", &s, NULL, 0), 0);
	ck_assert_str_eq(said, "0000\n");
	s = (struct hr_spawn){.umask = -1, .setpgid = true};
	ck_assert_int_eq(run_script("set -- $(cat /proc/$$/stat); echo $(($6 == $$)) $(($5 == $$))",
			     &s, NULL, 0),
	    0);
	ck_assert_str_eq(said, "0 1\n");
}
END_TEST

START_TEST(environment_can_be_replaced)
{
	char only[] = "ONLY=this", *envp[] = {only, NULL};
	struct hr_spawn s = {.umask = -1, .envp = envp};

	ck_assert_int_eq(run_script("echo $ONLY$HOME", &s, NULL, 0), 0);
	ck_assert_str_eq(said, "this\n");
}
END_TEST

/* The middle process dies; its child must get the signal it was promised. */
START_TEST(death_of_the_parent_is_a_signal)
{
	int p[2];
	pid_t middle;
	char c;

	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	middle = fork();
	ck_assert_int_ge(middle, 0);
	if (middle == 0) {
		const char *argv[] = {"sleep", "600", NULL};
		const struct hr_spawn_fd keep = {p[1], 3};

		if (hr_spawn(&(const struct hr_spawn){.path = "sleep",
				 .argv = argv,
				 .fds = &keep,
				 .nfds = 1,
				 .umask = -1,
				 .pdeathsig = SIGKILL},
			NULL) < 0)
			_exit(1);
		_exit(0);
	}
	hr_fd_close(&p[1]);
	/* end of file: nobody holds the pipe any more, so the sleeper is gone */
	ck_assert_int_eq(hr_fd_read(p[0], &c, 1), 0);
	ck_assert_int_eq(waitpid(middle, NULL, 0), middle);
	hr_fd_close(&p[0]);
}
END_TEST

struct noted {
	pid_t caller, child;
	char program[PATH_MAX]; /* what the child was then */
};

static void
note_child(void *arg, pid_t pid)
{
	struct noted *n = arg;
	char link[64];
	ssize_t len;

	n->caller = getpid();
	n->child = pid;
	(void)snprintf(link, sizeof(link), "/proc/%ld/exe", (long)pid);
	len = readlink(link, n->program, sizeof(n->program) - 1);
	n->program[len > 0 ? len : 0] = '\0';
}

START_TEST(the_caller_knows_the_child_before_its_program)
{
	const char *argv[] = {"nothing-here", NULL};
	struct noted n = {0};
	struct hr_spawn s = {
	    .path = "/bin/true", .argv = argv, .umask = -1, .forked = note_child, .arg = &n};
	struct hr_err err = {0};
	char self[PATH_MAX] = "";
	pid_t pid;

	ck_assert_int_gt(readlink("/proc/self/exe", self, sizeof(self) - 1), 0);
	pid = hr_spawn(&s, &err);
	ck_assert_msg(pid > 0, "%s", err.msg);
	ck_assert_int_eq(n.caller, getpid());
	ck_assert_int_eq(n.child, pid);
	if (getenv("CK_FORK") == NULL) /* under valgrind it is valgrind's */
		ck_assert_str_eq(n.program, self);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	s.path = "/nonexistent/nothing-here";
	ck_assert_int_eq(hr_spawn(&s, &err), -1);
	ck_assert_int_ne(n.child, pid);
}
END_TEST

static void
die(void *arg, pid_t pid)
{
	(void)arg;
	(void)pid;
	(void)kill(getpid(), SIGKILL);
}

/* What nobody has noted does not live on. */
START_TEST(a_caller_that_is_killed_meanwhile_leaves_no_child)
{
	const char *argv[] = {"sh", "-c", "echo ran >&3; sleep 600", NULL};
	int p[2];
	pid_t middle;
	char c;

	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	middle = fork();
	ck_assert_int_ge(middle, 0);
	if (middle == 0) {
		const struct hr_spawn_fd keep = {p[1], 3};

		(void)hr_spawn(&(const struct hr_spawn){.path = "sh",
				   .argv = argv,
				   .fds = &keep,
				   .nfds = 1,
				   .umask = -1,
				   .setsid = true,
				   .forked = die},
		    NULL);
		_exit(1);
	}
	hr_fd_close(&p[1]);
	ck_assert_int_eq(hr_fd_read(p[0], &c, 1), 0);
	ck_assert_int_eq(waitpid(middle, NULL, 0), middle);
	hr_fd_close(&p[0]);
}
END_TEST

struct locked {
	pthread_mutex_t lock;
	int held[2], wanted[2];
};

static void *
hold(void *arg)
{
	struct locked *l = arg;
	char c;

	(void)pthread_mutex_lock(&l->lock);
	(void)!write(l->held[1], "", 1);
	(void)!read(l->wanted[0], &c, 1);
	(void)pthread_mutex_unlock(&l->lock);
	return NULL;
}

static void
want(void *arg, pid_t pid)
{
	struct locked *l = arg;

	(void)pid;
	(void)!write(l->wanted[1], "", 1);
	(void)pthread_mutex_lock(&l->lock);
	(void)pthread_mutex_unlock(&l->lock);
}

/* A lock that a thread holds when we fork is held for good in the child: it takes none. */
START_TEST(a_lock_of_another_thread_holds_nothing_up)
{
	const char *argv[] = {"true", NULL};
	struct locked l = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct hr_err err = {0};
	pthread_t thread;
	pid_t pid;
	char c;

	ck_assert_int_eq(pipe2(l.held, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(l.wanted, O_CLOEXEC), 0);
	ck_assert_int_eq(pthread_create(&thread, NULL, hold, &l), 0);
	ck_assert_int_eq(hr_fd_read(l.held[0], &c, 1), 1);
	pid = hr_spawn(
	    &(const struct hr_spawn){
		.path = "true", .argv = argv, .umask = -1, .forked = want, .arg = &l},
	    &err);
	ck_assert_msg(pid > 0, "%s", err.msg);
	ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
	ck_assert_int_eq(pthread_join(thread, NULL), 0);
	hr_fd_close(&l.held[0]);
	hr_fd_close(&l.held[1]);
	hr_fd_close(&l.wanted[0]);
	hr_fd_close(&l.wanted[1]);
}
END_TEST

/* A child that copied the tables would leave each page to be mapped again at its next write. */
START_TEST(memory_of_the_caller_takes_no_time)
{
	static const size_t pages = 4096, size = 4096;
	char *p =
	    mmap(NULL, pages * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct hr_spawn s = {.umask = -1};
	struct rusage before, after;
	size_t i;

	ck_assert_ptr_ne(p, MAP_FAILED);
	(void)madvise(p, pages * size, MADV_NOHUGEPAGE);
	memset(p, 1, pages * size);
	ck_assert_int_eq(getrusage(RUSAGE_SELF, &before), 0);
	ck_assert_int_eq(run_script("exit 3", &s, NULL, 0), 3 << 8);
	for (i = 0; i < pages; i++)
		p[i * size] = 2;
	ck_assert_int_eq(getrusage(RUSAGE_SELF, &after), 0);
	ck_assert_int_lt(after.ru_minflt - before.ru_minflt, (long)pages / 4);
	ck_assert_int_eq(munmap(p, pages * size), 0);
}
END_TEST

/* A file with this process's memory may be written, and read by its account, if it is dumpable. */
START_TEST(another_account_leaves_the_caller_dumpable)
{
	static const gid_t groups[] = {1};
	static const struct hr_spawn_user user = {
	    .uid = 1, .gid = 1, .groups = groups, .ngroups = 1};
	struct hr_spawn s = {.umask = -1, .user = &user};

	if (geteuid() != 0)
		return; /* only root can start a program as another account */
	ck_assert_int_eq(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
	ck_assert_int_eq(run_script("id -u", &s, NULL, 0), 0);
	ck_assert_str_eq(said, "1\n");
	ck_assert_int_eq(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 1);
}
END_TEST

START_TEST(wait_gives_status_and_cut_stderr)
{
	const char *argv[] = {
	    "sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x >&2; exit 9", NULL};
	char text[16];
	int status = hr_spawn_wait(argv, text, sizeof(text), NULL);

	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 9);
	ck_assert_str_eq(text, "xxxxxxxxxxxxxxx");
}
END_TEST

START_TEST(a_program_is_not_waited_for_for_ever)
{
	/* one that says something and hangs; one that hangs without stderr; one that ends and
	 * leaves somebody behind, who has it */
	const char *hangs[] = {"sh", "-c", "echo no >&2; exec sleep 1000", NULL};
	const char *silent[] = {"sh", "-c", "exec 2>&-; sleep 1000; true", NULL};
	const char *leaves[] = {"sh", "-c", "echo yes >&2; sleep 1 & exit 3", NULL};
	struct hr_err err = {0};
	char text[16];

	ck_assert_int_eq(hr_spawn_wait_for(hangs, 300, text, sizeof(text), &err), -1);
	ck_assert_int_eq(err.code, HR_E_TIMEOUT);
	ck_assert_int_eq(hr_spawn_wait_for(silent, 300, text, sizeof(text), &err), -1);
	ck_assert_int_eq(err.code, HR_E_TIMEOUT);
	ck_assert_int_eq(
	    hr_exit_code(hr_spawn_wait_for(leaves, 60000, text, sizeof(text), &err)), 3);
	ck_assert_str_eq(text, "yes\n");
}
END_TEST

/* A child that has no room for the report at another number reports at the first one. */
START_TEST(no_room_for_descriptors_is_an_error)
{
	const char *argv[] = {"true", NULL};
	struct hr_spawn_fd fds[] = {{STDIN_FILENO, 29}};
	struct hr_spawn s = {.path = "/bin/true", .argv = argv, .umask = -1, .fds = fds, .nfds = 1};
	struct rlimit limit = {30, 30};
	struct hr_err err = {0};

	ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
	ck_assert_int_lt(hr_spawn(&s, &err), 0);
	ck_assert_ptr_ne(strstr(err.msg, "/bin/true"), NULL);
}
END_TEST

static void
stop_it(void *arg, pid_t pid)
{
	(void)arg;
	ck_assert_int_eq(kill(pid, SIGSTOP), 0);
}

/* Another account can stop the child that already belongs to it. */
START_TEST(a_child_that_is_stopped_before_exec)
{
	static const char *const argv[] = {"true", NULL};
	struct hr_spawn s = {
	    .path = argv[0], .argv = argv, .umask = -1, .forked = stop_it, .start_ms = 50};
	struct hr_err err = {0};

	ck_assert_int_eq(hr_spawn(&s, &err), -1);
	ck_assert_str_eq(err.msg, "true: not started in time");
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
}
END_TEST

/* A listening socket of a process is copied, and no other descriptor. */
START_TEST(listeners_of_a_process)
{
	const int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0u);
	int ends[2], listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), copy;
	struct sockaddr_un a = {.sun_family = AF_UNIX}, got;
	socklen_t len = sizeof(got);

	ck_assert_int_ge(pidfd, 0);
	ck_assert_int_eq(bind(listener, (struct sockaddr *)&a, sizeof(a.sun_family)), 0);
	ck_assert_int_eq(hr_pid_listener(pidfd, listener), -1); /* not yet */
	ck_assert_int_eq(listen(listener, 1), 0);
	copy = hr_pid_listener(pidfd, listener);
	ck_assert_int_ge(copy, 0);
	ck_assert_int_ne(copy, listener);
	ck_assert_int_eq(getsockname(copy, (struct sockaddr *)&got, &len), 0);
	ck_assert_uint_gt(len, sizeof(a.sun_family)); /* the kernel has chosen its name */
	ck_assert_int_eq(fcntl(copy, F_GETFD), FD_CLOEXEC);
	hr_fd_close(&copy);
	hr_fd_close(&listener);
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_eq(hr_pid_listener(pidfd, ends[0]), -1);
	hr_fd_close(&ends[0]);
	ck_assert_int_eq(hr_pid_listener(pidfd, ends[1] + 1000), -1);
	hr_fd_close(&ends[1]);
	(void)close(pidfd);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("spawn");
	TCase *tc = tcase_create("spawn");
	TCase *native = tcase_create("limits");
	SRunner *sr;
	int failed;

	hr_fd_close_from(3);

	tcase_add_test(tc, missing_program_is_an_error_and_no_zombie);
	tcase_add_test(tc, bad_descriptor_is_an_error);
	tcase_add_test(tc, descriptors_cross_and_nothing_else_passes);
	tcase_add_test(
	    native, one_that_is_alone_gets_what_is_named); /* descriptors of its own, too */
	tcase_add_test(tc, targets_may_overlap_sources);
	tcase_add_test(tc, unnamed_stdio_is_dev_null);
	tcase_add_test(tc, signals_start_default_and_open);
	tcase_set_tags(native, "no-valgrind"); /* it has a limit of descriptors of its own */
	tcase_add_test(native, session_group_umask_and_limit);
	tcase_add_test(tc, environment_can_be_replaced);
	tcase_add_test(tc, death_of_the_parent_is_a_signal);
	tcase_add_test(tc, the_caller_knows_the_child_before_its_program);
	tcase_add_test(tc, a_caller_that_is_killed_meanwhile_leaves_no_child);
	tcase_add_test(tc, a_lock_of_another_thread_holds_nothing_up);
	tcase_add_test(native, memory_of_the_caller_takes_no_time);
	tcase_add_test(tc, another_account_leaves_the_caller_dumpable);
	tcase_add_test(tc, wait_gives_status_and_cut_stderr);
	tcase_add_test(native, no_room_for_descriptors_is_an_error); /* it limits the process */
	tcase_add_test(
	    native, a_program_is_not_waited_for_for_ever); /* valgrind has no pidfd_open() */
	tcase_add_test(native, listeners_of_a_process);
	tcase_add_test(native, a_child_that_is_stopped_before_exec);
	suite_add_tcase(s, tc);
	suite_add_tcase(s, native);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
