/* files/readwrite: what happens between two looks at a file, and errors that no path brings about.
 */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/readwrite.h"
#include "lines.h"
#include "scratch.h"

static int stat_errno;      /* 0: stat() works */
static const char *removed; /* path that is there for one stat() alone */

int __real_stat(const char *path, struct stat *st);
int __wrap_stat(const char *path, struct stat *st);

int
__wrap_stat(const char *path, struct stat *st)
{
	if (removed != NULL && strcmp(path, removed) == 0) {
		removed = NULL;
		memset(st, 0, sizeof(*st));
		st->st_mode = S_IFREG | 0644;
		return 0;
	}
	if (stat_errno == 0)
		return __real_stat(path, st);
	errno = stat_errno;
	return -1;
}

/* A file that cannot be examined may exist: it is not taken for a new one. */
START_TEST(a_file_that_cannot_be_examined)
{
	static const char path[] = "/nonexistent/handrail-test";
	const struct hr_write q = {.path = {path, sizeof(path) - 1},
	    .content = {"x", 1},
	    .start = 0,
	    .end = -1,
	    .owner = getuid()};
	HR_BUF(text, 4096);

	stat_errno = EIO;
	ck_assert_int_eq(hr_rw_write(&q, &text), HR_RW_RAISED);
	ck_assert_str_eq(hr_buf_str(&text), "[Errno 5] Input/output error");
	stat_errno = 0; /* for the next test, which may be of the same process */
}
END_TEST

/* A file that is removed while it is written is a new one, which the lines of the request say
 * nothing about. */
START_TEST(a_file_that_is_removed_meanwhile)
{
	HR_BUF(path, 128);
	HR_BUF(text, 4096);
	HR_BUF(now, 4096);
	struct hr_write q = {.content = {"x", 1}, .start = 2, .end = 3, .owner = getuid()};

	hr_buf_addf(&path, "%s/file", scratch);
	removed = hr_buf_str(&path);
	q.path = hr_span_of_buf(&path);
	ck_assert_msg(hr_rw_write(&q, &text) == HR_RW_DONE, "%s", hr_buf_str(&text));
	ck_assert_int_eq(hr_path_read(hr_buf_str(&path), &now, NULL), 0);
	ck_assert_str_eq(hr_buf_str(&now), "x\n");
	ck_assert_int_eq(unlink(hr_buf_str(&path)), 0);
	/* a lone surrogate cannot be encoded */
	removed = hr_buf_str(&path);
	q.content = (struct hr_span){"\xed\xa0\x80", 3};
	ck_assert_int_eq(hr_rw_write(&q, &text), HR_RW_RAISED);
	ck_assert_str_eq(hr_buf_str(&text),
	    "'utf-8' codec can't encode character '\\ud800' in position 0: surrogates not allowed");
	ck_assert_int_eq(access(hr_buf_str(&path), F_OK), -1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("readwrite");
	TCase *c = tcase_create("readwrite");

	tcase_add_unchecked_fixture(c, scratch_make, scratch_remove);
	tcase_add_test(c, a_file_that_cannot_be_examined);
	tcase_add_test(c, a_file_that_is_removed_meanwhile);
	suite_add_tcase(s, c);
	return lines_run(s);
}
