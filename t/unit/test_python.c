/* session/python against `type -P python` of the real bash, on made-up PATHs. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "session/python.h"

static char top[64];

static const char *
in_top(const char *name)
{
	static char path[200];

	(void)snprintf(path, sizeof(path), "%s/%s", top, name);
	return path;
}

/* prog: an executable; file: without the bit; dir: a directory; link: one to nothing; loop: a link
 * to a program; none: an empty directory. Each holds one "python". */
static void
setup(void)
{
	static const char *const dirs[] = {
	    "prog", "file", "dir", "dir/python", "link", "good", "none", "home", "home/bin"};
	size_t i;

	(void)snprintf(top, sizeof(top), "/tmp/hr-python-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	for (i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
		ck_assert_int_eq(mkdir(in_top(dirs[i]), 0755), 0);
	ck_assert_int_eq(hr_path_write(in_top("prog/python"), "", 0, 0755, NULL), 0);
	ck_assert_int_eq(hr_path_write(in_top("file/python"), "", 0, 0644, NULL), 0);
	ck_assert_int_eq(hr_path_write(in_top("home/bin/python"), "", 0, 0755, NULL), 0);
	ck_assert_int_eq(symlink("/nonexistent", in_top("link/python")), 0);
	ck_assert_int_eq(symlink("../prog/python", in_top("good/python")), 0);
}

static void
teardown(void)
{
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

/* What bash says, run in cwd. */
static void
ask_bash(const char *path, const char *cwd, char *ret, size_t cap)
{
	size_t n;
	FILE *p;

	ck_assert_int_eq(chdir(cwd), 0);
	ck_assert_int_eq(setenv("PATH_ASKED", path, 1), 0);
	ck_assert_int_eq(setenv("HOME", in_top("home"), 1), 0);
	p = popen("exec " HR_BASH_PATH " --norc -c 'PATH=$PATH_ASKED; type -P python'", "r");
	ck_assert_ptr_nonnull(p);
	n = fread(ret, 1, cap - 1, p);
	ret[n] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	(void)pclose(p); /* 1: nothing found */
}

static void
check_path(const char *path, const char *cwd)
{
	char want[1000], home[200];
	HR_BUF(got, 4096);

	(void)snprintf(home, sizeof(home), "%s/home", top);
	ask_bash(path, cwd, want, sizeof(want));
	hr_buf_adds(&got, "x");
	hr_python_find(path, cwd, home, &got);
	ck_assert_msg(strcmp(hr_buf_str(&got) + 1, want) == 0, "PATH=%s in %s: \"%s\", not \"%s\"",
	    path, cwd, hr_buf_str(&got) + 1, want);
}

START_TEST(every_pair_of_entries)
{
	static const char *const entries[] = {"", ".", "..", "prog", "./prog", "prog/", "~",
	    "~/bin", "~/", "%s/prog", "%s//prog/", "%s/file", "%s/dir", "%s/link", "%s/good",
	    "%s/none", "/nonexistent", "file"};
	static const char *const dirs[] = {"", "/prog", "/file", "/none"};
	char one[100], two[100], path[300], cwd[100];
	size_t i, j, n = sizeof(entries) / sizeof(entries[0]);

	for (i = 0; i < n; i++) {
		(void)snprintf(cwd, sizeof(cwd), "%s%s", top, dirs[i % 4]);
		(void)snprintf(one, sizeof(one), entries[i], top);
		check_path(one, cwd);
		for (j = 0; j < n; j++) {
			(void)snprintf(two, sizeof(two), entries[j], top);
			(void)snprintf(path, sizeof(path), "%s:%s", one, two);
			(void)snprintf(cwd, sizeof(cwd), "%s%s", top, dirs[(i + j) % 4]);
			check_path(path, cwd);
		}
	}
}
END_TEST

START_TEST(no_path_at_all)
{
	char cwd[100];

	(void)snprintf(cwd, sizeof(cwd), "%s/prog", top);
	check_path("", cwd);
	(void)snprintf(cwd, sizeof(cwd), "%s/file", top);
	check_path("", cwd);
	check_path("", top);
}
END_TEST

/* /proc's links to what we have open are ours, not the shell's. */
START_TEST(a_link_to_what_is_open)
{
	static const char *const ways[] = {"/proc/self/root%s/good", "/proc/self/cwd", "%s/magic"};
	char path[200], magic[100];
	HR_BUF(got, 4096);
	size_t i;

	(void)snprintf(path, sizeof(path), "%s/good", top);
	(void)snprintf(magic, sizeof(magic), "%s/magic", top);
	ck_assert_int_eq(chdir(path), 0);
	ck_assert_int_eq(symlink("/proc/self/cwd", magic), 0);
	for (i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		(void)snprintf(path, sizeof(path), ways[i], top);
		hr_python_find(path, "/", "/", &got);
		ck_assert_str_eq(hr_buf_str(&got), "");
	}
	(void)snprintf(path, sizeof(path), "%s/good", top);
	hr_python_find(path, "/", "/", &got);
	ck_assert_str_ne(hr_buf_str(&got), "");
	hr_buf_done(&got);
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(unlink(magic), 0);
}
END_TEST

START_TEST(a_path_that_is_too_long)
{
	HR_FREE char *path = malloc(300001);
	struct hr_buf got;

	ck_assert_ptr_nonnull(path);
	memset(path, 'x', 300000);
	path[300000] = '\0';
	hr_buf_init(&got, 1000);
	hr_python_find(path, "/", "/", &got);
	ck_assert_int_eq(got.fail, HR_E_TOOLARGE);
	hr_buf_done(&got);
	hr_buf_init(&got, 1u << 20);
	hr_python_find(path, "/", "/", &got);
	ck_assert_str_eq(hr_buf_str(&got), "");
	hr_buf_done(&got);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("python");
	TCase *tc = tcase_create("python"), *native = tcase_create("native");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 120);
	tcase_add_test(tc, every_pair_of_entries);
	tcase_add_test(tc, no_path_at_all);
	tcase_add_test(tc, a_path_that_is_too_long);
	tcase_set_tags(native, "no-valgrind"); /* it knows no openat2 */
	tcase_add_checked_fixture(native, setup, teardown);
	tcase_add_test(native, a_link_to_what_is_open);
	suite_add_tcase(s, tc);
	suite_add_tcase(s, native);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
