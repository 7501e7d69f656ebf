/* Copies out of a sandbox without a server, by what its kind says of a path. */
#include "config.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/err.h"
#include "base/path.h"
#include "host/handle.h"
#include "host/transfer/cp.h"
#include "host/transfer/zip.h"
#include "lines.h"
#include "scratch.h"

static char top[40];

/* What it answers: a list for each path, NULL: the error that `broken` is; and one archive. */
static const struct answer {
	const char *path, *list;
} * answers;
static const char *packed; /* the directory that is sent; NULL: nothing is there */
static struct hr_err broken;

static int
list_files(void *self, const char *path, char **ret_json, struct hr_err *err)
{
	const struct answer *a = answers;

	(void)self;
	while (a->path != NULL && strcmp(a->path, path) != 0)
		a++;
	if (a->path != NULL && a->list == NULL)
		return hr_err_pass(err, &broken);
	*ret_json = strdup(a->path != NULL ? a->list : "[]");
	return 0;
}

static int
copy_from(void *self, const char *path, char **ret_file, struct hr_err *err)
{
	(void)self;
	if (packed == NULL || strcmp(path, "d/f") != 0)
		return hr_err_set(err, HR_E_NOTFOUND, "Path not found: %s", path);
	return (*ret_file = hr_zip_directory(packed, false, true, err)) != NULL ? 0 : -1;
}

static const struct hr_sandbox_ops ops = {.copy_from = copy_from, .list_files = list_files};

static void
set_up(void)
{
	const char *built = getenv("abs_top_builddir");

	ck_assert_ptr_nonnull(built);
	ck_assert_int_eq(setenv("HANDRAIL_LIBEXECDIR", built, 1), 0);
	(void)snprintf(top, sizeof(top), "%s/XXXXXX", scratch);
	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_int_eq(chdir(top), 0);
	ck_assert_int_eq(mkdir("here", 0755), 0);
	ck_assert_int_eq(hr_path_mkdirs("one", 0755, NULL, NULL), 0);
	ck_assert_int_eq(hr_path_write("one/f", "1", 1, 0644, NULL), 0);
	ck_assert_int_eq(hr_path_mkdirs("two", 0755, NULL, NULL), 0);
	ck_assert_int_eq(hr_path_write("two/f", "1", 1, 0644, NULL), 0);
	ck_assert_int_eq(hr_path_write("two/g", "2", 1, 0644, NULL), 0);
	ck_assert_int_eq(hr_path_mkdirs("deep/f", 0755, NULL, NULL), 0);
	ck_assert_int_eq(hr_path_write("deep/f/f", "1", 1, 0644, NULL), 0);
	ck_assert_int_eq(hr_path_mkdirs("none", 0755, NULL, NULL), 0);
	broken = (struct hr_err){0};
}

static void
tear_down(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

static unsigned
entries(const char *dir)
{
	DIR *d = opendir(dir);
	unsigned n = 0;

	ck_assert_ptr_nonnull(d);
	while (hr_dir_next(d) != NULL)
		n++;
	(void)closedir(d);
	return n;
}

static int
get(const char *dir, struct hr_err *err)
{
	struct hr_sandbox s = {.ops = &ops, .connected = true};

	packed = dir;
	return hr_cp_out(&s, "d/f", "here/f", err);
}

static const struct answer file[] = {{"d/f", "[\"/w/d/f\"]"}, {"d/f/..", NULL}, {NULL, NULL}};

/* As one in a directory that its user may enter and not list. */
START_TEST(file_below_what_cannot_be_listed)
{
	struct hr_err err = {0};
	struct stat st;

	(void)hr_err_sys(&broken, EACCES, "list /w/d");
	answers = file;
	ck_assert_msg(get("one", &err) == 0, "%s", err.msg);
	ck_assert_int_eq(stat("here/f", &st), 0);
	ck_assert(S_ISREG(st.st_mode));
	ck_assert_uint_eq(entries("here"), 1);
}
END_TEST

/* Another program may have changed it meanwhile. */
START_TEST(what_is_no_file_alone)
{
	static const char *const sent[] = {"two", "deep", "none"};
	struct hr_err err = {0};
	size_t i;

	(void)hr_err_sys(&broken, EACCES, "list /w/d");
	answers = file;
	ck_assert_int_eq(hr_path_write("here/f", "was", 3, 0644, NULL), 0);
	for (i = 0; i < sizeof(sent) / sizeof(*sent); i++) {
		HR_BUF(b, 100);

		ck_assert_int_eq(get(sent[i], &err), -1);
		ck_assert_str_eq(
		    err.msg, "the sandbox must send the requested file and nothing else");
		ck_assert_uint_eq(entries("here"), 1);
		ck_assert_int_eq(hr_path_read("here/f", &b, NULL), 0);
		ck_assert_str_eq(hr_buf_str(&b), "was");
	}
}
END_TEST

START_TEST(special_files_stay)
{
	struct hr_err err = {0};
	struct stat st;

	answers = file;
	ck_assert_int_eq(mkfifo("here/f", 0600), 0);
	ck_assert_int_eq(get("one", &err), -1);
	ck_assert_str_eq(err.msg, "here/f is not a regular file; \"-\" writes to standard output");
	ck_assert_int_eq(lstat("here/f", &st), 0);
	ck_assert(S_ISFIFO(st.st_mode));
	ck_assert_uint_eq(entries("here"), 1);
}
END_TEST

static const struct {
	struct answer answers[3];
	bool no_list;
} broken_lists[] = {
    {{{"d/f", NULL}}, false},
    {{{"d/f", "[\"/w/d/f\"]"}, {"d/f/f", NULL}}, false},
    {{{"d/f", "[\"/w/d/f\"]"}, {"d/f/f", "{}"}}, true},
    {{{"d/f", "[\"/w"}}, true},
};

START_TEST(lists_that_fail)
{
	struct hr_err err = {0};

	(void)hr_err_set(&broken, HR_E_HTTP_NETWORK, "the connection was cut");
	answers = broken_lists[_i].answers;
	ck_assert_int_eq(get("one", &err), -1);
	ck_assert_msg(strstr(err.msg, broken_lists[_i].no_list ? "is not a JSON list"
							       : "the connection was cut") != NULL,
	    "%s", err.msg);
	ck_assert_uint_eq(entries("here"), 0);
}
END_TEST

static const struct {
	struct answer answers[3];
} directories[] = {
    {{{"d/f", "[\"/w/d/f/f\"]"}, {"d/f/f", "[\"/w/d/f/f\"]"}}}, /* with a file of its own name */
    {{{"d/f", "[\"f\"]"}}},                                     /* names alone */
    {{{"d/f", "[\"/w/d/f/f\", \"/w/d/f/g\"]"}}},
    {{{"d/f", "[\"/w/d/f/f\"]"}, {"d/f/f", NULL}}}, /* what leads elsewhere */
};

START_TEST(directories_by_their_lists)
{
	struct hr_err err = {0};
	struct stat st;

	(void)hr_err_sys(&broken, _i % 2 == 0 ? EACCES : ELOOP, "list /w/d/f/f");
	answers = directories[_i].answers;
	ck_assert_msg(get("one", &err) == 0, "%s", err.msg);
	ck_assert_int_eq(stat("here/f/f", &st), 0);
	ck_assert(S_ISREG(st.st_mode));
}
END_TEST

#define N(a) (int)(sizeof(a) / sizeof(*(a)))

int
main(void)
{
	Suite *s = suite_create("cp");
	TCase *tc = tcase_create("cp");

	tcase_add_unchecked_fixture(tc, scratch_make, scratch_remove);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, file_below_what_cannot_be_listed);
	tcase_add_test(tc, what_is_no_file_alone);
	tcase_add_test(tc, special_files_stay);
	tcase_add_loop_test(tc, lists_that_fail, 0, N(broken_lists));
	tcase_add_loop_test(tc, directories_by_their_lists, 0, N(directories));
	suite_add_tcase(s, tc);
	return lines_run(s);
}
