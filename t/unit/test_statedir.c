/* session/statedir: files made as root among the hostile. The tests that change owners need root
 * and a second account; without root they check what is left to check. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "session/statedir.h"

#define OTHER 65534 /* nobody */

static char top[64], inside[80];

static void
setup(void)
{
	(void)snprintf(top, sizeof(top), "/tmp/hr-statedir-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	(void)snprintf(inside, sizeof(inside), "%s/d", top);
	ck_assert_int_eq(mkdir(inside, 0700), 0);
}

static void
teardown(void)
{
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

static const char *
at(const char *name)
{
	static char path[200];

	(void)snprintf(path, sizeof(path), "%s/%s", inside, name);
	return path;
}

static bool
is_root(void)
{
	return geteuid() == 0;
}

static struct hr_statedir
open_for_other(void)
{
	struct hr_statedir d;
	struct hr_err err = {0};

	hr_statedir_init(&d);
	ck_assert_msg(hr_statedir_open(&d, inside, is_root() ? OTHER : geteuid(), getegid(),
			  is_root(), &err) == 0,
	    "%s", err.msg);
	return d;
}

/* Owner, permission bits and type at once. */
static void
check_stat(const char *path, uid_t uid, mode_t mode)
{
	struct stat st;

	ck_assert_msg(lstat(path, &st) == 0, "%s", path);
	ck_assert_int_eq(st.st_uid, uid);
	ck_assert_msg(st.st_mode == mode, "%s: mode %o, not %o", path, st.st_mode, mode);
}

START_TEST(a_directory_of_the_shells_user_is_taken_from_it)
{
	struct hr_statedir d;

	if (is_root())
		ck_assert_int_eq(chown(inside, OTHER, OTHER), 0);
	d = open_for_other();
	check_stat(inside, geteuid(), S_IFDIR | 0711);
	hr_statedir_close(&d);
	ck_assert_int_eq(d.fd, -1);
}
END_TEST

START_TEST(foreign_writable_and_linked_directories_are_refused)
{
	struct hr_statedir d;
	struct hr_err err = {0};
	char link[100];

	hr_statedir_init(&d);
	if (is_root()) {
		ck_assert_int_eq(chown(inside, OTHER - 1, OTHER), 0);
		ck_assert_int_eq(hr_statedir_open(&d, inside, OTHER, OTHER, true, &err), -1);
		ck_assert_ptr_nonnull(strstr(err.msg, "belongs to user 65533"));
		/* nor the shell user's own where nothing is to be given */
		ck_assert_int_eq(chown(inside, OTHER, OTHER), 0);
		ck_assert_int_eq(hr_statedir_open(&d, inside, OTHER, OTHER, false, &err), -1);
		ck_assert_int_eq(chown(inside, 0, 0), 0);
	}
	ck_assert_int_eq(chmod(inside, 0777), 0);
	ck_assert_int_eq(hr_statedir_open(&d, inside, geteuid(), getegid(), false, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "others can write"));
	ck_assert_int_eq(chmod(inside, 0700), 0);
	(void)snprintf(link, sizeof(link), "%s/link", top);
	ck_assert_int_eq(symlink(inside, link), 0);
	ck_assert_int_eq(hr_statedir_open(&d, link, geteuid(), getegid(), false, &err), -1);
	ck_assert_int_eq(hr_statedir_open(&d, at("none"), 0, 0, false, &err), -1);
	ck_assert_int_eq(d.fd, -1);
}
END_TEST

START_TEST(fifos_have_the_right_owners_and_modes)
{
	HR_CLEAN(hr_statedir_close) struct hr_statedir d = open_for_other();
	struct hr_err err = {0};
	int read_end, write_end;
	char c;

	(void)umask(0077);
	read_end = hr_statedir_fifo(&d, "r", HR_STATEDIR_USER, &err);
	write_end = hr_statedir_fifo(&d, "w", HR_STATEDIR_ANYBODY, &err);
	ck_assert_msg(read_end >= 0 && write_end >= 0, "%s", err.msg);
	check_stat(at("r"), is_root() ? OTHER : geteuid(), S_IFIFO | 0600);
	check_stat(at("w"), geteuid(), S_IFIFO | 0622);
	/* both ways, and nobody waits */
	ck_assert_int_eq(hr_fd_read(write_end, &c, 1), -1);
	ck_assert_int_eq(errno, EAGAIN);
	ck_assert_int_eq(write(read_end, "x", 1), 1);
	ck_assert_int_eq(hr_fd_read(read_end, &c, 1), 1);
	ck_assert_int_eq(fcntl(read_end, F_GETFD), FD_CLOEXEC);
	hr_fd_close(&read_end);
	hr_fd_close(&write_end);
}
END_TEST

START_TEST(links_in_place_of_files_lead_nowhere)
{
	static const char *const names[] = {"soft", "hard"};
	HR_CLEAN(hr_statedir_close) struct hr_statedir d = open_for_other();
	struct hr_err err = {0};
	char victim[100];
	struct stat st;
	size_t i;
	int fd;

	(void)snprintf(victim, sizeof(victim), "%s/victim", top);
	ck_assert_int_eq(hr_path_write(victim, "mine", 4, 0600, &err), 0);
	for (i = 0; i < 2; i++) {
		ck_assert_int_eq(symlink(victim, at("soft")), 0);
		ck_assert_int_eq(link(victim, at("hard")), 0);
		if (i == 0) {
			fd = hr_statedir_fifo(&d, "soft", HR_STATEDIR_USER, &err);
			ck_assert_int_ge(fd, 0);
			hr_fd_close(&fd);
			fd = hr_statedir_fifo(&d, "hard", HR_STATEDIR_USER, &err);
			ck_assert_int_ge(fd, 0);
			hr_fd_close(&fd);
		} else {
			ck_assert_int_eq(
			    hr_statedir_put(&d, "soft", "new", 3, HR_STATEDIR_USER, &err), 0);
			ck_assert_int_eq(
			    hr_statedir_put(&d, "hard", "new", 3, HR_STATEDIR_USER, &err), 0);
			check_stat(at("soft"), is_root() ? OTHER : geteuid(), S_IFREG | 0400);
			ck_assert_int_eq(
			    hr_statedir_put(&d, "soft", "new", 3, HR_STATEDIR_ANYBODY, &err), 0);
			check_stat(at("soft"), geteuid(), S_IFREG | 0444);
		}
		check_stat(victim, geteuid(), S_IFREG | 0600);
		ck_assert_int_eq(stat(victim, &st), 0);
		ck_assert_int_eq(st.st_size, 4);
		hr_statedir_remove(&d, names[0]);
		hr_statedir_remove(&d, names[1]);
	}
}
END_TEST

START_TEST(a_directory_in_place_of_a_file_goes_if_it_is_empty)
{
	HR_CLEAN(hr_statedir_close) struct hr_statedir d = open_for_other();
	struct hr_err err = {0};

	ck_assert_int_eq(mkdir(at("f"), 0700), 0);
	ck_assert_int_eq(hr_statedir_put(&d, "f", "a", 1, HR_STATEDIR_USER, &err), 0);
	hr_statedir_remove(&d, "f");
	hr_statedir_remove(&d, "f"); /* once more is no error */
	ck_assert_int_eq(mkdir(at("f"), 0700), 0);
	ck_assert_int_eq(mkdir(at("f/sub"), 0700), 0);
	ck_assert_int_eq(hr_statedir_put(&d, "f", "a", 1, HR_STATEDIR_USER, &err), -1);
	ck_assert_int_eq(err.sys, EEXIST);
}
END_TEST

START_TEST(a_file_without_a_name)
{
	HR_CLEAN(hr_statedir_close) struct hr_statedir d = open_for_other();
	struct hr_err err = {0};
	struct stat st;
	int fd;

	ck_assert_int_eq(symlink("../elsewhere", at("log")), 0);
	fd = hr_statedir_unnamed(&d, "log", &err);
	ck_assert_msg(fd >= 0, "%s", err.msg);
	ck_assert_int_eq(access(at("../elsewhere"), F_OK), -1);
	ck_assert_int_eq(lstat(at("log"), &st), -1);
	ck_assert_int_eq(fstat(fd, &st), 0);
	ck_assert_int_eq(st.st_nlink, 0);
	ck_assert_int_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(st.st_uid, geteuid());
	ck_assert_int_eq(write(fd, "abc", 3), 3);
	hr_fd_close(&fd);
	ck_assert_int_eq(mkdir(at("log"), 0700), 0);
	ck_assert_int_eq(mkdir(at("log/mine"), 0700), 0);
	ck_assert_int_eq(hr_statedir_unnamed(&d, "log", &err), -1);
	ck_assert_int_eq(err.sys, EEXIST);
}
END_TEST

START_TEST(sweeping_takes_only_its_own)
{
	static const char *const prefixes[] = {"report.", "rc"};
	HR_CLEAN(hr_statedir_close) struct hr_statedir d = open_for_other();
	struct hr_err err = {0};

	ck_assert_int_eq(hr_statedir_put(&d, "report.1", "", 0, HR_STATEDIR_USER, &err), 0);
	ck_assert_int_eq(hr_statedir_put(&d, "report.2", "", 0, HR_STATEDIR_USER, &err), 0);
	ck_assert_int_eq(hr_statedir_put(&d, "rc", "", 0, HR_STATEDIR_USER, &err), 0);
	ck_assert_int_eq(hr_statedir_put(&d, "mine", "", 0, HR_STATEDIR_USER, &err), 0);
	hr_statedir_sweep(&d, prefixes, 2);
	ck_assert_int_eq(access(at("report.1"), F_OK), -1);
	ck_assert_int_eq(access(at("report.2"), F_OK), -1);
	ck_assert_int_eq(access(at("rc"), F_OK), -1);
	ck_assert_int_eq(access(at("mine"), F_OK), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("statedir");
	TCase *tc = tcase_create("statedir");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_directory_of_the_shells_user_is_taken_from_it);
	tcase_add_test(tc, foreign_writable_and_linked_directories_are_refused);
	tcase_add_test(tc, fifos_have_the_right_owners_and_modes);
	tcase_add_test(tc, links_in_place_of_files_lead_nowhere);
	tcase_add_test(tc, a_directory_in_place_of_a_file_goes_if_it_is_empty);
	tcase_add_test(tc, a_file_without_a_name);
	tcase_add_test(tc, sweeping_takes_only_its_own);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
