/* files/filebody: ranges, tags, and a body that is sent in part. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/filebody.h"
#include "files/place/whole.h"

static const struct {
	const char *header;
	off_t size;
	enum hr_range range;
	off_t from, len;
} ranges[] = {
    {"bytes=0-0", 10, HR_RANGE_PART, 0, 1},
    {"bytes=2-4", 10, HR_RANGE_PART, 2, 3},
    {"bytes=9-", 10, HR_RANGE_PART, 9, 1},
    {"Bytes= 3-99 ", 10, HR_RANGE_PART, 3, 7},
    {"bytes=-3", 10, HR_RANGE_PART, 7, 3},
    {"bytes=-30", 10, HR_RANGE_PART, 0, 10},
    {"bytes=10-", 10, HR_RANGE_NONE, 0, 0},
    {"bytes=-0", 10, HR_RANGE_NONE, 0, 0},
    {"bytes=0-", 0, HR_RANGE_NONE, 0, 0},
    {"bytes=-1", 0, HR_RANGE_NONE, 0, 0},
    {"", 10, HR_RANGE_ALL, 0, 0},
    {"bytes=", 10, HR_RANGE_ALL, 0, 0},
    {"bytes=-", 10, HR_RANGE_ALL, 0, 0},
    {"bytes=a-b", 10, HR_RANGE_ALL, 0, 0},
    {"bytes=5-2", 10, HR_RANGE_ALL, 0, 0},
    {"bytes=0-1,3-4", 10, HR_RANGE_ALL, 0, 0},
    {"lines=0-1", 10, HR_RANGE_ALL, 0, 0},
    {"bytes=1", 10, HR_RANGE_ALL, 0, 0},
    {"bytes=99999999999999999999-", 10, HR_RANGE_ALL, 0, 0},
    {"bytes=0-99999999999999999999", 10, HR_RANGE_ALL, 0, 0},
};

START_TEST(range)
{
	off_t from = -1, len = -1;

	ck_assert_int_eq(
	    hr_range_parse(ranges[_i].header, ranges[_i].size, &from, &len), ranges[_i].range);
	if (ranges[_i].range == HR_RANGE_PART) {
		ck_assert_int_eq(from, ranges[_i].from);
		ck_assert_int_eq(len, ranges[_i].len);
	}
}
END_TEST

START_TEST(tags)
{
	HR_BUF(b, 100);

	hr_filebody_etag(&b, 0x5f5e100, 0x1f);
	ck_assert_str_eq(b.p, "\"5f5e100-1f\"");
	ck_assert(hr_filebody_matches("\"5f5e100-1f\"", b.p));
	ck_assert(hr_filebody_matches("\"a\" , W/\"5f5e100-1f\"", b.p));
	ck_assert(hr_filebody_matches("*", b.p));
	ck_assert(!hr_filebody_matches("", b.p));
	ck_assert(!hr_filebody_matches("\"5f5e100-1\", \"f\"", b.p));
	hr_buf_reset(&b);
	hr_filebody_date(&b, 784111777);
	ck_assert_str_eq(b.p, "Sun, 06 Nov 1994 08:49:37 GMT");
}
END_TEST

struct memory_sink {
	struct hr_sink sink;
	struct hr_buf b;
};

static int
memory_write(struct hr_sink *sink, const void *p, size_t len)
{
	hr_buf_add(&((struct memory_sink *)sink)->b, p, len);
	return 0;
}

START_TEST(a_part_is_sent)
{
	struct memory_sink m = {.sink = {memory_write, -1}};
	char name[] = "/tmp/hr-filebody-XXXXXX";
	struct hr_err err = {0};
	int fd = mkstemp(name);
	void *body;

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, "0123456789", 10), 10);
	hr_buf_init(&m.b, 100);
	body = hr_filebody_new(dup(fd), 3, 4);
	ck_assert_int_eq(hr_filebody_send(body, &m.sink, &err), 0);
	ck_assert_str_eq(hr_buf_str(&m.b), "3456");
	hr_filebody_free(body);
	body = hr_filebody_new(fd, 8, 4); /* it has become shorter */
	ck_assert_int_eq(hr_filebody_send(body, &m.sink, &err), -1);
	ck_assert_int_eq(err.code, HR_E_GONE);
	hr_filebody_free(body);
	hr_filebody_free(NULL);
	hr_buf_done(&m.b);
	(void)unlink(name);
}
END_TEST

/* Returns the file, with what stat() reports of it. */
static int
opened(const char *path, struct stat *st)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fstat(fd, st), 0);
	return fd;
}

/* A file of the kernel reports a size of 0 and has text; others are left alone. */
START_TEST(files_of_the_kernel)
{
	static const char name[] = "Name:";
	char bytes[sizeof(name) - 1];
	struct stat st;
	int fd = opened("/proc/self/status", &st), same;

	ck_assert_int_eq(st.st_size, 0);
	ck_assert_int_eq(hr_whole_take(&fd, &st), 0);
	ck_assert_int_gt(st.st_size, 100);
	ck_assert_int_eq(lseek(fd, 0, SEEK_END), st.st_size);
	ck_assert_int_eq(pread(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
	ck_assert_mem_eq(bytes, name, sizeof(bytes));
	ck_assert_int_eq(close(fd), 0);
	fd = same = opened("/bin/sh", &st);
	ck_assert_int_eq(hr_whole_take(&fd, &st), 0);
	ck_assert_int_eq(fd, same);
	ck_assert_int_eq(close(fd), 0);
	fd = same = opened("/proc", &st);
	ck_assert_int_eq(hr_whole_take(&fd, &st), 0);
	ck_assert_int_eq(fd, same);
	ck_assert_int_eq(close(fd), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("filebody");
	TCase *tc = tcase_create("filebody");
	SRunner *sr;
	int failed;

	tcase_add_loop_test(tc, range, 0, (int)(sizeof(ranges) / sizeof(ranges[0])));
	tcase_add_test(tc, tags);
	tcase_add_test(tc, a_part_is_sent);
	tcase_add_test(tc, files_of_the_kernel);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
