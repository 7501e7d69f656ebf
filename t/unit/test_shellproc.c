/* session/shellproc: a real bash on a real terminal. */
#include "config.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "session/shellproc.h"

#define PATIENCE_MS 20000

static char top[64], rcfile[100];
static struct hr_shellproc s;
static struct hr_shell_user user;
static char seen[65536]; /* on the terminal, and not yet expected */
static size_t seen_len;

static void
setup(void)
{
	struct hr_err err = {0};

	(void)snprintf(top, sizeof(top), "/tmp/hr-shellproc-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_int_eq(chmod(top, 0755), 0);
	(void)snprintf(rcfile, sizeof(rcfile), "%s/rc", top);
	ck_assert_int_eq(hr_path_write(rcfile, "PS1=; echo started\n", 19, 0644, NULL), 0);
	ck_assert_int_eq(hr_shell_user_find(&user, "whoever", false, &err), 0);
	(void)signal(SIGTTOU, SIG_IGN);
	hr_shellproc_init(&s);
}

static void
teardown(void)
{
	hr_shellproc_hangup(&s, true);
	while (waitpid(-1, NULL, 0) > 0)
		;
	hr_shell_user_done(&user);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

static char *const envp[] = {(char *)(uintptr_t) "PATH=/usr/bin:/bin",
    (char *)(uintptr_t) "TERM=dumb", (char *)(uintptr_t) "MARK=here", NULL};

static void
no_output_yet(void)
{
	seen[0] = '\0';
	seen_len = 0;
}

static int
start(const char *bash, const char *dir, struct hr_err *err)
{
	HR_FREE char *where = NULL;
	int r = hr_shellproc_start(&s, bash, rcfile, &user, envp, dir, &where, err);

	no_output_yet();
	ck_assert(r == 0 || where == NULL);
	return r;
}

/* Reads the terminal until the text is there: where it begins. */
static char *
await(const char *text)
{
	struct pollfd p = {.fd = s.master, .events = POLLIN};
	char *at;
	ssize_t n;

	while ((at = strstr(seen, text)) == NULL) {
		ck_assert_msg(poll(&p, 1, PATIENCE_MS) == 1, "no \"%s\" in: %s", text, seen);
		n = hr_fd_read(s.master, seen + seen_len, sizeof(seen) - 1 - seen_len);
		ck_assert_msg(n > 0, "no \"%s\" in: %s", text, seen);
		seen_len += (size_t)n;
		seen[seen_len] = '\0';
	}
	return at;
}

/* What came after it is for the next one. */
static void
forget_up_to(const char *p)
{
	seen_len -= (size_t)(p - seen);
	memmove(seen, p, seen_len + 1);
}

static void
expect(const char *text)
{
	forget_up_to(await(text) + strlen(text));
}

static void
type(const char *text)
{
	ck_assert_int_eq(hr_fd_write_full(s.master, text, strlen(text), NULL), 0);
}

static unsigned
open_descriptors(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");

	while (readdir(d) != NULL)
		n++;
	(void)closedir(d);
	return n;
}

START_TEST(an_interactive_bash)
{
	struct hr_err err = {0};
	int status;

	ck_assert_msg(start(HR_BASH_PATH, top, &err) == 0, "%s", err.msg);
	expect("started");
	type("echo $MARK $- $0 `stty size` `tty | cut -c1-9` `pwd` $(ps -o sid= -p $$)\n");
	expect("here himBHs bash 1000 1000 /dev/pts/ /tmp/hr-shellproc-");
	type("exit 3\n");
	ck_assert_int_eq(waitpid(s.pid, &status, 0), s.pid);
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	/* its end is no end of the terminal: the slave is open here, too */
	ck_assert_int_ge(fcntl(s.slave, F_GETFD), FD_CLOEXEC);
}
END_TEST

START_TEST(it_inherits_nothing)
{
	struct hr_err err = {0};
	char command[200];
	struct stat st;
	int leaks[2], i;

	ck_assert_int_eq(pipe2(leaks, O_CLOEXEC), 0);
	ck_assert_int_eq(fstat(leaks[0], &st), 0);
	for (i = 1; i < NSIG; i++)
		(void)signal(i, SIG_IGN);
	ck_assert_int_eq(start(HR_BASH_PATH, top, &err), 0);
	for (i = 1; i < NSIG; i++)
		(void)signal(i, SIG_DFL); /* later tests may share this process */
	(void)snprintf(command, sizeof(command),
	    "trap; echo leaks: $(ls -l /proc/$$/fd | grep -c 'pipe:.%lu\\|ptmx').; "
	    "grep SigIgn /proc/self/status\n",
	    (unsigned long)st.st_ino);
	type(command);
	expect("leaks: 0.");
	expect("0000000000000000");
	hr_fd_close(&leaks[0]);
	hr_fd_close(&leaks[1]);
}
END_TEST

static void
check_dir(const char *dir, const char *want)
{
	struct hr_err err = {0};
	HR_FREE char *where = NULL;

	ck_assert_msg(
	    hr_shellproc_start(&s, HR_BASH_PATH, rcfile, &user, envp, dir, &where, &err) == 0,
	    "%s: %s", dir, err.msg);
	ck_assert_str_eq(where, want);
	no_output_yet();
	type("echo in $(/bin/pwd).\n");
	(void)snprintf(err.msg, sizeof(err.msg), "in %s.", want);
	expect(err.msg);
	hr_shellproc_hangup(&s, true);
	ck_assert_int_eq(waitpid(s.pid, NULL, 0), s.pid);
	hr_shellproc_init(&s);
}

START_TEST(a_missing_directory_is_the_one_above)
{
	char dir[200];

	check_dir(top, top);
	(void)snprintf(dir, sizeof(dir), "%s/no/such/place", top);
	check_dir(dir, top);
	(void)snprintf(dir, sizeof(dir), "%s/rc/x", top); /* a file */
	check_dir(dir, top);
	check_dir("/nonexistent-hr", "/");
	check_dir("/", "/");
}
END_TEST

START_TEST(a_program_that_cannot_be_started)
{
	struct hr_err err = {0};
	char path[200];
	unsigned before = open_descriptors();

	ck_assert_int_eq(start("/nonexistent/bash", top, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "/nonexistent/bash"));
	ck_assert_ptr_nonnull(strstr(err.msg, "No such file"));
	(void)snprintf(path, sizeof(path), "%s/garbage", top);
	ck_assert_int_eq(hr_path_write(path, "\1\2\3", 3, 0755, NULL), 0);
	ck_assert_int_eq(start(path, top, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, path));
	ck_assert_ptr_nonnull(strstr(err.msg, "Exec format error"));
	/* nothing is left of either */
	ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
	ck_assert_int_eq(errno, ECHILD);
	ck_assert_uint_eq(open_descriptors(), before);
	ck_assert_int_eq(s.master, -1);
	ck_assert_int_eq(s.slave, -1);
}
END_TEST

START_TEST(another_account)
{
	struct hr_err err = {0};

	struct hr_shell_user none;

	ck_assert_int_eq(hr_shell_user_find(&none, "no-such-user-hr", true, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "no-such-user-hr"));
	if (geteuid() != 0)
		return;
	hr_shell_user_done(&user);
	ck_assert_int_eq(hr_shell_user_find(&user, "nobody", true, &err), 0);
	ck_assert(user.change);
	ck_assert_int_eq(start(HR_BASH_PATH, top, &err), 0);
	type("echo $(id -un) $(id -G) $(stat -c %U $(tty)) $(stat -c %U /proc/$$/status).\n");
	expect("nobody 65534 nobody nobody.");
}
END_TEST

static struct termios
modes(void)
{
	struct termios t;

	ck_assert_int_eq(tcgetattr(s.slave, &t), 0);
	return t;
}

static int
unread(void)
{
	int n = -1;

	ck_assert_int_eq(ioctl(s.slave, FIONREAD, &n), 0);
	return n;
}

/* A terminal with nobody on it. */
static void
bare_terminal(void)
{
	struct hr_err err = {0};

	ck_assert_int_eq(start(HR_BASH_PATH, top, &err), 0);
	type("exit\n");
	ck_assert_int_eq(waitpid(s.pid, NULL, 0), s.pid);
	hr_shellproc_tidy(&s);
}

START_TEST(modes_are_put_right)
{
	struct pollfd readable = {.events = POLLIN};
	struct termios was, t;

	bare_terminal();
	readable.fd = s.slave;
	was = modes();
	ck_assert((was.c_iflag & IUTF8) != 0);
	t = was;
	cfmakeraw(&t);
	t.c_cc[VINTR] = 'X' & 0x1f;
	ck_assert_int_eq(tcsetattr(s.slave, TCSANOW, &t), 0);
	ck_assert(hr_shellproc_raw(&s));
	type("unread");
	ck_assert_int_eq(poll(&readable, 1, PATIENCE_MS), 1);
	ck_assert_int_eq(unread(), 6);
	hr_shellproc_tidy(&s);
	ck_assert_int_eq(unread(), 0);
	t = modes();
	ck_assert(!hr_shellproc_raw(&s));
	ck_assert_uint_eq(
	    t.c_lflag & (ICANON | ISIG | ECHO | IEXTEN), ICANON | ISIG | ECHO | IEXTEN);
	ck_assert_uint_eq(t.c_oflag & (OPOST | ONLCR), OPOST | ONLCR);
	ck_assert_uint_eq(t.c_iflag & ICRNL, ICRNL);
	ck_assert_uint_eq(t.c_cflag & CSIZE, CS8);
	/* the user's own */
	ck_assert_int_eq(t.c_cc[VINTR], 'X' & 0x1f);
}
END_TEST

START_TEST(what_the_terminal_says_of_itself)
{
	struct termios t;

	bare_terminal();
	ck_assert(hr_shellproc_echoes(&s));
	t = modes();
	t.c_lflag &= ~(tcflag_t)ECHO;
	ck_assert_int_eq(tcsetattr(s.slave, TCSANOW, &t), 0);
	ck_assert(!hr_shellproc_echoes(&s));
	/* without canonical mode its program may echo by itself */
	t.c_lflag &= ~(tcflag_t)ICANON;
	ck_assert_int_eq(tcsetattr(s.slave, TCSANOW, &t), 0);
	ck_assert(hr_shellproc_echoes(&s));
	hr_shellproc_literal(&s);
	t = modes();
	ck_assert_uint_eq(t.c_lflag & (ISIG | IEXTEN), 0);
	ck_assert_uint_eq(t.c_iflag & (IXON | ICRNL), 0);
	/* a program's canonical input is none of ours */
	hr_shellproc_tidy(&s);
	hr_shellproc_literal(&s);
	t = modes();
	ck_assert_uint_ne(t.c_lflag & ISIG, 0);
}
END_TEST

START_TEST(who_is_in_the_foreground)
{
	struct hr_err err = {0};

	ck_assert_int_eq(start(HR_BASH_PATH, top, &err), 0);
	expect("started");
	type("echo at rest\n");
	expect("at rest\r\n");
	ck_assert(!hr_shellproc_foreground(&s, getpid()));
	ck_assert(!hr_shellproc_foreground(&s, 0));
	ck_assert(!hr_shellproc_foreground(&s, -1));
	type("sh -c 'echo f\"\"g $$.; read x'; echo over\n");
	expect("fg ");
	ck_assert(!hr_shellproc_foreground(&s, s.pid));
	type("\n");
	expect("over\r\n");
}
END_TEST

/* The process id that the command prints as pid=N. */
static pid_t
printed_pid(const char *command)
{
	const char *end;
	long pid;

	type(command);
	expect("pid=");
	end = await(".");
	pid = strtol(seen, NULL, 10);
	ck_assert_int_gt(pid, 1);
	forget_up_to(end);
	return (pid_t)pid;
}

static void
expect_end(pid_t pid)
{
	struct pollfd p = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};

	if (p.fd < 0) {
		ck_assert_int_eq(errno, ESRCH); /* reaped already */
		return;
	}
	ck_assert_msg(poll(&p, 1, PATIENCE_MS) == 1, "%d lives", (int)pid);
	hr_fd_close(&p.fd);
}

START_TEST(hangup_leaves_no_process)
{
	struct hr_err err = {0};
	unsigned before = open_descriptors();
	pid_t job, deaf;

	ck_assert_int_eq(start(HR_BASH_PATH, top, &err), 0);
	expect("started");
	job = printed_pid("stty -echo; sleep 1000 & echo p\"\"id=$!.\n");
	deaf =
	    printed_pid("(trap '' HUP TERM; exec sh -c 'echo p\"\"id=$$.; exec sleep 1001') &\n");
	type("sleep 1002; sleep 1003\n");
	ck_assert_int_eq(kill(job, 0), 0);
	hr_shellproc_hangup(&s, true);
	ck_assert_int_eq(s.master, -1);
	ck_assert_uint_eq(open_descriptors(), before);
	ck_assert_int_eq(waitpid(s.pid, NULL, 0), s.pid);
	expect_end(job);
	expect_end(deaf);
}
END_TEST

START_TEST(a_mere_hangup_spares_who_does_not_listen)
{
	struct hr_err err = {0};
	pid_t deaf;

	ck_assert_int_eq(start(HR_BASH_PATH, top, &err), 0);
	expect("started");
	deaf = printed_pid(
	    "stty -echo; (trap '' HUP; exec sh -c 'echo p\"\"id=$$.; exec sleep 1001') &\n");
	hr_shellproc_hangup(&s, false);
	ck_assert_int_eq(waitpid(s.pid, NULL, 0), s.pid);
	ck_assert_int_eq(kill(deaf, 0), 0);
	ck_assert_int_eq(kill(deaf, SIGKILL), 0);
}
END_TEST

int
main(void)
{
	Suite *suite = suite_create("shellproc");
	TCase *tc = tcase_create("shellproc");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, an_interactive_bash);
	tcase_add_test(tc, it_inherits_nothing);
	tcase_add_test(tc, a_missing_directory_is_the_one_above);
	tcase_add_test(tc, a_program_that_cannot_be_started);
	tcase_add_test(tc, another_account);
	tcase_add_test(tc, modes_are_put_right);
	tcase_add_test(tc, what_the_terminal_says_of_itself);
	tcase_add_test(tc, who_is_in_the_foreground);
	tcase_add_test(tc, a_mere_hangup_spares_who_does_not_listen);
	suite_add_tcase(suite, tc);
	tc = tcase_create("hangup");
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_set_tags(tc, "no-valgrind"); /* it knows no pidfd_open */
	tcase_add_test(tc, hangup_leaves_no_process);
	suite_add_tcase(suite, tc);
	sr = srunner_create(suite);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
