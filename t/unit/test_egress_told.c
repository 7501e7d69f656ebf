/* Tests the file by which a box learns of its refused connections. */
#include "config.h"

#include <arpa/inet.h>
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/err.h"
#include "egress/told.h"

static char dir[64], path[80];
static struct egress_told told;

static void
setup(void)
{
	(void)strcpy(dir, "/tmp/told.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/%s", dir, EGRESS_TOLD_FILE);
	egress_told_open(&told, dir);
	ck_assert_int_ge(told.fd, 0);
}

static void
teardown(void)
{
	egress_told_close(&told);
	ck_assert_int_eq(hr_path_remove(dir, NULL), 0);
}

/* Compares the last line without its time. */
static void
expect(const char *want)
{
	struct hr_err err = {0};
	char *end, *last = NULL, *p;
	HR_BUF(b, 1 << 20);

	ck_assert_int_eq(hr_path_read(path, &b, &err), 0);
	ck_assert_uint_gt(b.len, 0);
	for (p = b.p; (end = strchr(p, '\n')) != NULL; p = end + 1) {
		*end = '\0';
		last = p;
	}
	ck_assert_int_eq(*p, '\0');
	ck_assert_ptr_nonnull(last);
	ck_assert_int_gt(strtoll(last, &end, 10), 1700000000);
	ck_assert_str_eq(end, want);
}

START_TEST(sentences)
{
	struct egress_event e = {.kind = "tcp", .name = "a.test", .port = 22, .rule = "no rule"};

	egress_told_add(&told, &e);
	expect(" a.test:22 a.test:22 was refused: no rule");
	e = (struct egress_event){.kind = "tcp", .address.s_addr = htonl(0x0A000001), .port = 80};
	egress_told_add(&told, &e);
	expect(" 10.0.0.1:80 10.0.0.1:80 was refused: no rule");
	e = (struct egress_event){.kind = "http",
	    .name = "a.test",
	    .port = 443,
	    .method = "POST",
	    .path = "/x",
	    .rule = "rules a.test 2"};
	egress_told_add(&told, &e);
	expect(" a.test:443 POST a.test/x was refused: rules a.test 2");
}
END_TEST

START_TEST(hostile_texts_stay_in_their_line)
{
	char long_path[1000];
	struct egress_event e = {.kind = "http",
	    .name = "a.test",
	    .port = 80,
	    .method = "G\nT",
	    .path = "/ \x1b[2J\r\n1 forged:1 line\xc3\xa4",
	    .rule = "no\nrule"};

	egress_told_add(&told, &e);
	expect(" a.test:80 G?T a.test/??[2J??1?forged:1?line?? was refused: no?rule");
	memset(long_path, 'x', sizeof(long_path) - 1);
	long_path[0] = '/';
	long_path[sizeof(long_path) - 1] = '\0';
	e.path = long_path;
	egress_told_add(&told, &e);
	{
		char want[512];

		(void)snprintf(want, sizeof(want),
		    " a.test:80 G?T a.test%.200s... was refused: no?rule", long_path);
		expect(want);
	}
}
END_TEST

START_TEST(floods_are_cut)
{
	const struct egress_event e = {.kind = "tcp", .name = "a.test", .port = 1};
	struct stat before, after;
	int first, i;

	for (i = 0; i < 10000; i++)
		egress_told_add(&told, &e);
	/* an open file keeps its inode number from the files that replace it */
	first = open(path, O_RDONLY | O_CLOEXEC);
	ck_assert_int_ge(first, 0);
	ck_assert_int_eq(fstat(first, &before), 0);
	/* 20 lines in each second that this took */
	ck_assert_int_lt(before.st_size, 20000);
	/* a full file is replaced by a new one */
	for (i = 0; i < 5000; i++) {
		told.lines = 0;
		egress_told_add(&told, &e);
	}
	ck_assert_int_eq(stat(path, &after), 0);
	ck_assert_int_ne((int)before.st_ino, (int)after.st_ino);
	close(first);
	ck_assert_int_le(after.st_size, 64 << 10);
	ck_assert_int_eq(after.st_mode & 0777, 0644);
	expect(" a.test:1 a.test:1 was refused: no rule");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("egress_told");
	TCase *c = tcase_create("told");
	SRunner *r;
	int failed;

	umask(077);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, sentences);
	tcase_add_test(c, hostile_texts_stay_in_their_line);
	tcase_add_test(c, floods_are_cut);
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
