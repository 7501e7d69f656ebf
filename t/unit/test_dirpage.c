/* Pages of a directory: each name once and in order whatever the page's size, and whatever is in
 * it. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "files/dirpage.h"
#include "scratch.h"

static void
begin(void)
{
	strcpy(scratch + strlen(scratch) - 6, "XXXXXX");
	scratch_make();
}

static int
at(void)
{
	int fd = open(scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	return fd;
}

static void
file(const char *name, int size)
{
	int dir = at(), fd = openat(dir, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(ftruncate(fd, size), 0);
	ck_assert_int_eq(futimens(fd, (struct timespec[2]){{.tv_sec = 7}, {.tv_sec = 7}}), 0);
	hr_fd_close(&fd);
	hr_fd_close(&dir);
}

static const char *
page(const char *after, size_t limit)
{
	static char text[1u << 20];
	struct hr_err err = {0};
	HR_BUF(b, sizeof(text) - 1);

	ck_assert_msg(hr_dirpage_put(&b, at(), after, limit, false, &err) == 0, "%s", err.msg);
	memcpy(text, hr_buf_str(&b), b.len + 1);
	return text;
}

START_TEST(one_of_each)
{
	int dir = at();

	ck_assert_str_eq(page("", 10), "\"entries\":[],\"next\":null,\"unnamed\":0");
	file("b\n\"<img>", 3);
	file("\xff\xfe", 0);     /* no UTF-8 */
	file("\xed\xa0\x80", 0); /* a surrogate */
	file("\xc3\xa9", 5000);
	ck_assert_int_eq(symlinkat("/etc", dir, "to"), 0);
	ck_assert_int_eq(symlinkat("nothing", dir, "a-dead-one"), 0);
	ck_assert_int_eq(mkfifoat(dir, "pipe", 0600), 0);
	ck_assert_int_eq(mkdirat(dir, "z", 0700), 0);
	ck_assert_ptr_nonnull(strstr(page("", 1), "[{\"name\":\"z/\",\"type\":\"directory\","));
	ck_assert_ptr_nonnull(strstr(page("", 1), "\"next\":\"z/\",\"unnamed\":2"));
	ck_assert_ptr_nonnull(
	    strstr(page("z/", 1), "[{\"name\":\"a-dead-one\",\"type\":\"link\","));
	ck_assert_str_eq(page("a-dead-one", 1), "\"entries\":[{\"name\":\"b\\n\\\"<img>\",\"type\":"
						"\"file\",\"size\":3,\"modified\":7}],"
						"\"next\":\"b\\n\\\"<img>\",\"unnamed\":2");
	ck_assert_ptr_nonnull(
	    strstr(page("b\n\"<img>", 1), "[{\"name\":\"pipe\",\"type\":\"other\","));
	ck_assert_ptr_nonnull(strstr(page("pipe", 1), "[{\"name\":\"to\",\"type\":\"link\","));
	ck_assert_str_eq(page("to", 1),
	    "\"entries\":[{\"name\":\"\xc3\xa9\",\"type\":\"file\",\"size\":5000,\"modified\":7}],"
	    "\"next\":null,\"unnamed\":2");
	ck_assert_ptr_nonnull(strstr(page("\xc3\xa9", 1), "\"entries\":[],\"next\":null"));
	hr_fd_close(&dir);
}
END_TEST

/* Every page by what the one before says of the next. */
START_TEST(pages_of_any_size)
{
	size_t limit = (size_t)_i, n = 0;
	char after[300] = "", want[16], name[16];
	int dir = at(), i;

	for (i = 0; i < 60; i++) {
		(void)snprintf(name, sizeof(name), "%03d", i * 7919 % 60);
		if (i * 7919 % 60 < 20)
			ck_assert_int_eq(mkdirat(dir, name, 0700), 0);
		else
			file(name, 1);
	}
	hr_fd_close(&dir);
	for (;;) {
		const char *p = page(after, limit), *next = strstr(p, "\"next\":"), *e;
		size_t here = 0;

		ck_assert_ptr_nonnull(next);
		for (e = p; (e = strstr(e, "{\"name\":\"")) != NULL; e++, here++, n++) {
			(void)snprintf(want, sizeof(want), n < 20 ? "%03zu/\"" : "%03zu\"", n);
			ck_assert_msg(strncmp(e + 9, want, strlen(want)) == 0, "%s", e);
		}
		ck_assert_uint_le(here, limit);
		if (sscanf(next, "\"next\":\"%299[^\"]\"", after) != 1)
			break;
		ck_assert_uint_eq(here, limit);
	}
	ck_assert_uint_eq(n, 60);
	/* a name that no entry can have */
	memset(after, 'x', sizeof(after) - 1);
	after[sizeof(after) - 1] = '\0';
	ck_assert_ptr_nonnull(strstr(page(after, limit), "\"entries\":[],\"next\":null"));
}
END_TEST

/* Every name is there as bytes, and "next" is ready for a query. */
START_TEST(names_of_any_bytes)
{
	struct hr_err err = {0};
	int dir = at();
	HR_BUF(b, 1 << 16);

	file("\xff%2f", 3);
	ck_assert_int_eq(mkdirat(dir, "a b\xfe", 0700), 0);
	hr_fd_close(&dir);
	ck_assert_int_eq(hr_dirpage_put(&b, at(), "", 1, true, &err), 0);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&b), "[{\"name\":\"a%20b%FE/\",\"type\""));
	ck_assert_ptr_nonnull(
	    strstr(hr_buf_str(&b), "\"next\":\"a%20b%FE/\",\"unnamed\":0,\"encoded\":true"));
	hr_buf_reset(&b);
	ck_assert_int_eq(hr_dirpage_put(&b, at(), "a b\xfe/", 1, true, &err), 0);
	ck_assert_str_eq(hr_buf_str(&b), "\"entries\":[{\"name\":\"%FF%252f\",\"type\":\"file\","
					 "\"size\":3,\"modified\":7}],\"next\":null,"
					 "\"unnamed\":0,\"encoded\":true");
}
END_TEST

START_TEST(what_is_no_directory)
{
	struct hr_err err = {0};
	HR_BUF(b, 100);
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	ck_assert_int_eq(hr_dirpage_put(&b, fd, "", 10, false, &err), -1);
	ck_assert_int_eq(err.code, HR_E_SYS);
	ck_assert_int_eq(fcntl(fd, F_GETFD), -1); /* it was taken */
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("dirpage");
	TCase *t = tcase_create("pages");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(t, begin, scratch_remove);
	tcase_add_test(t, one_of_each);
	tcase_add_loop_test(t, pages_of_any_size, 1, 3);
	tcase_add_loop_test(t, pages_of_any_size, 59, 62);
	tcase_add_test(t, names_of_any_bytes);
	tcase_add_test(t, what_is_no_directory);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
