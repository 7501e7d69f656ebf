/* files/history: ten texts a path, over processes, within a limit. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/path.h"
#include "files/history.h"

#include "lines.h"

static char top[64], dir[80];

static void
setup(void)
{
	const char *tmp = getenv("TMPDIR");

	(void)snprintf(top, sizeof(top), "%.40s/test_history.XXXXXX", tmp != NULL ? tmp : "/tmp");
	ck_assert_ptr_nonnull(mkdtemp(top));
	(void)snprintf(dir, sizeof(dir), "%s/undo", top);
}

static void
teardown(void)
{
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

static struct hr_span
span(const char *s)
{
	return (struct hr_span){s, strlen(s)};
}

static void
push(const char *path, const char *text)
{
	struct hr_err err = {.code = HR_OK};
	struct hr_history h;

	ck_assert_int_eq(hr_history_open(&h, dir, &err), 0);
	ck_assert_msg(
	    hr_history_push(&h, span(path), text, strlen(text), &err) == 0, "%s", err.msg);
	hr_history_close(&h);
}

/* Takes the newest; "" is none. */
static void
assert_pop(const char *path, const char *want)
{
	struct hr_history h;
	HR_BUF(b, 1 << 20);

	ck_assert_int_eq(hr_history_open(&h, dir, NULL), 0);
	ck_assert_int_eq(hr_history_peek(&h, span(path), &b, NULL), want[0] != '\0');
	ck_assert_str_eq(hr_buf_str(&b), want);
	ck_assert_int_eq(hr_history_drop(&h, span(path), NULL), 0);
	hr_history_close(&h);
}

START_TEST(a_stack_for_each_path)
{
	struct stat st;

	push("/a", "1");
	push("/a/b", "2");
	push("/a", "3");
	assert_pop("/a", "3");
	assert_pop("/a/b", "2");
	assert_pop("/a/b", "");
	assert_pop("/a", "1");
	assert_pop("/a", "");
	assert_pop("/never", "");
	ck_assert_int_eq(stat(dir, &st), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0700);
}
END_TEST

START_TEST(ten_of_them)
{
	char text[32];
	int i;

	for (i = 0; i < 25; i++) {
		(void)snprintf(text, sizeof(text), "text %d", i);
		push("/a", text);
	}
	for (i = 24; i > 14; i--) {
		(void)snprintf(text, sizeof(text), "text %d", i);
		assert_pop("/a", text);
	}
	assert_pop("/a", "");
}
END_TEST

/* Names that would mean something to the file system, and long ones. */
START_TEST(any_path)
{
	static const char *const paths[] = {"/", ".", "..", "/../..", "/a\nb", "/%2F", "/d",
	    "/\xC3\xA9", "//a", "/ ", "/e00000000000000000001"};
	char longer[5001], other[5001];
	size_t i;

	memset(longer, 'x', sizeof(longer) - 1);
	longer[5000] = '\0';
	memcpy(other, longer, sizeof(other));
	other[4999] = 'y';
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		push(paths[i], paths[i]);
	push(longer, "x");
	push(other, "y");
	assert_pop(longer, "x");
	assert_pop(other, "y");
	for (i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		assert_pop(paths[i], paths[i]);
		assert_pop(paths[i], "");
	}
}
END_TEST

START_TEST(an_empty_text_is_one)
{
	struct hr_history h;
	HR_BUF(b, 1 << 20);

	push("/a", "");
	ck_assert_int_eq(hr_history_open(&h, dir, NULL), 0);
	ck_assert_int_eq(hr_history_peek(&h, span("/a"), &b, NULL), 1);
	ck_assert_uint_eq(b.len, 0);
	hr_history_close(&h);
}
END_TEST

static int
sum_sizes(int dirfd, const char *name, const struct stat *st, void *arg)
{
	uint64_t *sum = arg;

	(void)dirfd;
	if (S_ISREG(st->st_mode) && name[0] == 'e')
		*sum += (uint64_t)st->st_size;
	return 0;
}

START_TEST(limit)
{
	struct hr_err err = {.code = HR_OK};
	struct hr_history h;
	char text[1000], path[32];
	uint64_t sum;
	int i;

	memset(text, 't', sizeof(text));
	ck_assert_int_eq(hr_history_open(&h, dir, NULL), 0);
	h.limit = 10000;
	for (i = 0; i < 100; i++) {
		(void)snprintf(path, sizeof(path), "/file%d", i);
		ck_assert_msg(
		    hr_history_push(&h, span(path), text, sizeof(text), &err) == 0, "%s", err.msg);
		sum = 0;
		ck_assert_int_eq(hr_path_walk(dir, sum_sizes, &sum, NULL), 0);
		ck_assert_uint_le(sum, 10000);
	}
	ck_assert_uint_ge(sum, 4000);
	ck_assert_int_eq(hr_history_drop(&h, span("/file99"), NULL), 0);
	/* what is too long is not kept, and nothing older may be restored instead */
	ck_assert_int_eq(hr_history_push(&h, span("/file98"), text, 1, NULL), 0);
	h.limit = 1000;
	ck_assert_int_eq(hr_history_push(&h, span("/file98"), text, 900, &err), -1);
	hr_history_close(&h);
	assert_pop("/file98", "");
}
END_TEST

/* Whoever holds it open is alone. */
START_TEST(turns)
{
	int i, n, status;
	FILE *f;

	for (i = 0; i < 4; i++) {
		if (fork() != 0)
			continue;
		for (n = 0; n < 50; n++) {
			struct hr_history h;
			int v = 0;
			char name[96];

			if (hr_history_open(&h, dir, NULL) < 0)
				_exit(1);
			(void)snprintf(name, sizeof(name), "%s/counter", top);
			f = fopen(name, "r");
			if (f != NULL) {
				if (fscanf(f, "%d", &v) != 1)
					_exit(2);
				(void)fclose(f);
			}
			f = fopen(name, "w");
			if (f == NULL || fprintf(f, "%d", v + 1) < 0 || fclose(f) != 0)
				_exit(3);
			hr_history_close(&h);
		}
		_exit(0);
	}
	for (i = 0; i < 4; i++) {
		ck_assert_int_gt(wait(&status), 0);
		ck_assert_int_eq(status, 0);
	}
	{
		char name[96];
		int v = 0;

		(void)snprintf(name, sizeof(name), "%s/counter", top);
		f = fopen(name, "r");
		ck_assert_ptr_nonnull(f);
		ck_assert_int_eq(fscanf(f, "%d", &v), 1);
		(void)fclose(f);
		ck_assert_int_eq(v, 200);
	}
}
END_TEST

START_TEST(no_place)
{
	struct hr_err err = {.code = HR_OK};
	struct hr_history h;

	ck_assert_int_eq(hr_history_open(&h, "/nonexistent/undo", &err), -1);
	ck_assert_int_eq(h.dir, -1);
	hr_history_close(&h);
	ck_assert_int_eq(symlink("/tmp", dir), 0); /* nobody puts a link there */
	ck_assert_int_eq(hr_history_open(&h, dir, &err), -1);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("history");
	TCase *tc = tcase_create("history");

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, a_stack_for_each_path);
	tcase_add_test(tc, ten_of_them);
	tcase_add_test(tc, any_path);
	tcase_add_test(tc, an_empty_text_is_one);
	tcase_add_test(tc, limit);
	tcase_add_test(tc, turns);
	tcase_add_test(tc, no_place);
	suite_add_tcase(s, tc);
	return lines_run(s);
}
