/* Descriptors for the next image of handraild: what is handed over arrives, everything else is
 * closed, and what has another form is refused as a whole. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/process/handover.h"

#define VARIABLE "HANDRAIL_HANDOVER"

static struct hr_err err;

/* In a process of its own, which loses every other descriptor; 0: all was right. */
static int
in_a_child(int (*fn)(const void *arg), const void *arg)
{
	int status = -1;
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(fn(arg));
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool
is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static bool
is_same(int fd, const struct stat *want)
{
	struct stat st;

	return fstat(fd, &st) == 0 && st.st_ino == want->st_ino && st.st_dev == want->st_dev;
}

static int
takes_both(const void *arg)
{
	const struct stat *want = arg;
	struct hr_handover h = {NULL, 0};
	const char *name;
	size_t at = 0;
	int fd, i;

	if (hr_handover_read(&h, &err) != 0 || h.n != 3 || getenv(VARIABLE) != NULL)
		return 1;
	fd = hr_handover_take(&h, "fcgi/a.sock");
	if (fd < 0 || !is_same(fd, want) || fcntl(fd, F_GETFD) != FD_CLOEXEC)
		return 2;
	if (hr_handover_take(&h, "fcgi/a.sock") != -1 || hr_handover_take(&h, "none") != -1 ||
	    hr_handover_take(&h, "worker/files/3/77") != -1)
		return 3;
	name = hr_handover_next(&h, &at, "worker/files/");
	if (name == NULL || strcmp(name, "worker/files/3/77") != 0 ||
	    hr_handover_next(&h, &at, "worker/files/") != NULL)
		return 4;
	hr_handover_done(&h); /* closes the third */
	for (i = STDERR_FILENO + 1; i < 64; i++) {
		if (i != fd && is_open(i))
			return 5;
	}
	return is_open(fd) ? 0 : 6;
}

START_TEST(what_is_handed_over_arrives)
{
	HR_CLEAN(hr_handover_done) struct hr_handover h = {NULL, 0};
	int pipes[2], stray;
	struct stat st;

	ck_assert_int_eq(pipe2(pipes, O_CLOEXEC), 0);
	stray = open("/dev/null", O_RDONLY);
	ck_assert_int_ge(stray, 0);
	ck_assert_int_eq(hr_handover_add(&h, pipes[0], &err, "fcgi/%s.sock", "a"), 0);
	ck_assert_int_eq(hr_handover_add(&h, -1, &err, "worker/%s/%d/%d", "files", 3, 77), 0);
	ck_assert_int_eq(hr_handover_add(&h, pipes[1], &err, "listener"), 0);
	ck_assert_int_eq(fcntl(h.v[0].fd, F_GETFD), 0); /* the next image finds it open */
	ck_assert_int_eq(fstat(pipes[0], &st), 0);
	ck_assert_int_eq(hr_handover_show(&h, &err), 0);
	ck_assert_int_eq(in_a_child(takes_both, &st), 0);
	hr_handover_hide();
	ck_assert_ptr_null(getenv(VARIABLE));
	hr_fd_close(&pipes[0]);
	hr_fd_close(&pipes[1]);
	hr_fd_close(&stray);
}
END_TEST

static int
is_refused(const void *arg)
{
	struct hr_handover h = {NULL, 0};

	(void)arg;
	return hr_handover_read(&h, &err) == -1 && err.code == HR_E_PROTO && h.n == 0 ? 0 : 1;
}

static int
is_nothing(const void *arg)
{
	struct hr_handover h = {NULL, 0};

	(void)arg;
	return hr_handover_read(&h, &err) == 0 && h.n == 0 && getenv(VARIABLE) == NULL ? 0 : 1;
}

static const char *const wrong[] = {" 3", " 3 4 keys", " 3 x", " =3", " a=", " a", "a=3", " a=3 ",
    " a=3  b=-1", " a=0", " a=2", " a=-2", " a=3 b=3", " a=99999999999", " a=3x",
    " a=99999999999999999999999"};

START_TEST(another_form_is_refused)
{
	char text[128];
	int fd = dup(STDERR_FILENO);

	ck_assert_int_ge(fd, 3); /* 3 is open */
	(void)snprintf(text, sizeof(text), "%ld%s", (long)getpid(), wrong[_i]);
	ck_assert_int_eq(setenv(VARIABLE, text, 1), 0);
	ck_assert_int_eq(in_a_child(is_refused, NULL), 0);
	hr_fd_close(&fd);
}
END_TEST

START_TEST(of_another_process_it_is_nothing)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%ld listener=3", (long)getppid());
	ck_assert_int_eq(setenv(VARIABLE, text, 1), 0);
	ck_assert_int_eq(in_a_child(is_nothing, NULL), 0);
	ck_assert_int_eq(setenv(VARIABLE, "nonsense", 1), 0);
	ck_assert_int_eq(in_a_child(is_nothing, NULL), 0);
	ck_assert_int_eq(unsetenv(VARIABLE), 0);
	ck_assert_int_eq(in_a_child(is_nothing, NULL), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("handover");
	TCase *t = tcase_create("handover");
	SRunner *r;
	int failed;

	tcase_add_test(t, what_is_handed_over_arrives);
	tcase_add_loop_test(t, another_form_is_refused, 0, (int)(sizeof(wrong) / sizeof(wrong[0])));
	tcase_add_test(t, of_another_process_it_is_nothing);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_set_tap(r, "-");
	srunner_run_all(r, CK_SILENT);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
