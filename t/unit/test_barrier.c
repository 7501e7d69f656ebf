/* supervisor/hold: who waits, who goes on, and what is left. */
#include "config.h"

#include "supervisor/edge/barrier.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lines.h"

static char top[64], fifo[80];

static void
setup(void)
{
	(void)snprintf(top, sizeof(top), "/tmp/test-hold-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	(void)snprintf(fifo, sizeof(fifo), "%s/hold", top);
}

static void
teardown(void)
{
	ck_assert_int_eq(rmdir(top), 0); /* nothing is left in it */
}

/* A process that includes it, as nginx does. */
static pid_t
comes(void)
{
	pid_t pid = fork();

	ck_assert_int_ge(pid, 0);
	if (pid == 0)
		_exit(open(fifo, O_RDONLY | O_CLOEXEC) >= 0 ? 0 : 1);
	return pid;
}

static void
check_goes_on(pid_t pid)
{
	int status;

	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
}

START_TEST(who_waits_goes_on)
{
	struct hr_err err = {0};
	struct hr_barrier h;
	struct stat st;
	int status;
	pid_t pid;

	hr_barrier_init(&h);
	ck_assert_int_eq(hr_barrier_make(&h, top, &err), 0);
	ck_assert_int_eq(stat(fifo, &st), 0);
	ck_assert(S_ISFIFO(st.st_mode));
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	pid = comes();
	ck_assert_int_eq(waitpid(pid, &status, WNOHANG), 0); /* never before */
	ck_assert_int_eq(hr_barrier_release(&h, &err), 0);
	check_goes_on(pid);
	hr_barrier_done(&h);
	ck_assert_int_eq(access(fifo, F_OK), -1);
	hr_barrier_done(&h);
}
END_TEST

START_TEST(who_comes_later_does_not_wait)
{
	struct hr_err err = {0};
	struct hr_barrier h;

	hr_barrier_init(&h);
	ck_assert_int_eq(hr_barrier_make(&h, top, &err), 0);
	ck_assert_int_eq(hr_barrier_release(&h, &err), 0);
	check_goes_on(comes());
	check_goes_on(comes());
	hr_barrier_done(&h);
}
END_TEST

START_TEST(left_by_a_predecessor)
{
	struct hr_err err = {0};
	struct hr_barrier h;
	int fd = open(fifo, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	struct stat st;

	ck_assert_int_ge(fd, 0);
	(void)close(fd);
	hr_barrier_init(&h);
	ck_assert_int_eq(hr_barrier_make(&h, top, &err), 0);
	ck_assert_int_eq(stat(fifo, &st), 0);
	ck_assert(S_ISFIFO(st.st_mode));
	hr_barrier_done(&h);
}
END_TEST

START_TEST(cannot_be_made)
{
	size_t i;

	static const char *const patterns[] = {"a*", "a?", "a[b]", "a\\b"};
	struct hr_err err = {0};
	struct hr_barrier h;

	hr_barrier_init(&h);
	for (i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		ck_assert_int_eq(hr_barrier_make(&h, patterns[i], &err), -1);
		ck_assert_int_eq(err.code, HR_E_INVAL);
	}
	(void)snprintf(fifo, sizeof(fifo), "%s/none", top);
	ck_assert_int_eq(hr_barrier_make(&h, fifo, &err), -1);
	ck_assert_int_eq(err.sys, ENOENT);
	ck_assert_ptr_null(h.path);
	hr_barrier_done(&h);
}
END_TEST

START_TEST(gone_before_it_is_let_go)
{
	struct hr_err err = {0};
	struct hr_barrier h;

	hr_barrier_init(&h);
	ck_assert_int_eq(hr_barrier_make(&h, top, &err), 0);
	ck_assert_int_eq(unlink(fifo), 0);
	ck_assert_int_eq(hr_barrier_release(&h, &err), -1);
	ck_assert_int_eq(err.sys, ENOENT);
	hr_barrier_done(&h);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("hold");
	TCase *tc = tcase_create("hold");

	suite_add_tcase(s, tc);
	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, who_waits_goes_on);
	tcase_add_test(tc, who_comes_later_does_not_wait);
	tcase_add_test(tc, left_by_a_predecessor);
	tcase_add_test(tc, cannot_be_made);
	tcase_add_test(tc, gone_before_it_is_let_go);
	return lines_run(s);
}
