/* base/way: which directory keeps others out, and where a directory of several accounts fits. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/way.h"
#include "scratch.h"

static char *open_dir, *shut, *inner, *link_in;

static void
make(char **path, const char *name, mode_t mode)
{
	*path = hr_path_join(scratch, name);
	ck_assert_ptr_nonnull(*path);
	ck_assert_int_eq(mkdir(*path, 0700), 0);
	ck_assert_int_eq(chmod(*path, mode), 0);
}

static void
set_up(void)
{
	scratch_make();
	ck_assert_int_eq(chmod(scratch, 0711), 0);
	make(&open_dir, "open", 0755);
	make(&shut, "shut", 0750);
	make(&inner, "shut/inner", 0755);
	link_in = hr_path_join(open_dir, "link");
	ck_assert_int_eq(symlink(inner, link_in), 0);
}

static void
tear_down(void)
{
	free(open_dir);
	free(shut);
	free(inner);
	free(link_in);
	scratch_remove();
}

static void
barred_by(const char *path, const char *want)
{
	char dir[PATH_MAX];
	bool barred = hr_way_barred(path, NULL, dir);

	ck_assert_msg(barred == (want != NULL), "%s", path);
	if (want != NULL)
		ck_assert_str_eq(dir, want);
}

START_TEST(barred)
{
	HR_FREE char *later = hr_path_join(inner, "later/still");
	HR_FREE char *later_open = hr_path_join(open_dir, "later/still");

	barred_by("/", NULL);
	barred_by(open_dir, NULL);
	barred_by(later_open, NULL); /* what is not there yet bars nobody */
	barred_by(shut, shut);
	barred_by(inner, shut);
	barred_by(later, shut);
	barred_by(link_in, shut); /* by the directory that the link leads through */
}
END_TEST

START_TEST(a_path_without_an_end_bars_nobody)
{
	char dir[PATH_MAX];
	HR_FREE char *longest = malloc(PATH_MAX + 2);

	ck_assert_ptr_nonnull(longest);
	memset(longest, 'a', PATH_MAX + 1);
	longest[0] = '/';
	longest[PATH_MAX + 1] = '\0';
	ck_assert(!hr_way_barred(longest, NULL, dir));
	ck_assert(!hr_way_barred("relative", NULL, dir));
}
END_TEST

START_TEST(base)
{
	const char *const none[] = {NULL, "relative", "/last"};
	const char *const shut_first[] = {shut, open_dir, "/last"};
	const char *const missing[] = {"/nonexistent/handrail", open_dir, "/last"};
	HR_FREE char *later = hr_path_join(open_dir, "later");
	const char *const new_one[] = {later, "/last"};

	ck_assert_str_eq(hr_way_base(none, 3, true, 100), "/last");
	ck_assert_str_eq(hr_way_base(shut_first, 3, false, PATH_MAX), shut);
	ck_assert_str_eq(hr_way_base(shut_first, 3, true, PATH_MAX), open_dir);
	ck_assert_str_eq(hr_way_base(shut_first, 3, true, strlen(open_dir)), open_dir);
	ck_assert_str_eq(hr_way_base(shut_first, 3, true, strlen(open_dir) - 1), "/last");
	ck_assert_str_eq(hr_way_base(new_one, 2, true, PATH_MAX), later);
	/* the existing part of a missing one is "/", in which only root makes directories */
	ck_assert_str_eq(
	    hr_way_base(missing, 3, true, PATH_MAX), geteuid() == 0 ? missing[0] : open_dir);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("way");
	TCase *tc = tcase_create("way");
	SRunner *r;
	int failed;

	suite_add_tcase(s, tc);
	tcase_add_unchecked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, barred);
	tcase_add_test(tc, a_path_without_an_end_bars_nobody);
	tcase_add_test(tc, base);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
