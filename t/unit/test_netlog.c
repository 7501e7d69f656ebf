/* Tests the sentences about refused connections in a command's observation. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/netlog.h"

static char path[64], other[80];
static struct hr_netlog net;

static void
setup(void)
{
	int fd;

	(void)strcpy(path, "/tmp/netlog.XXXXXX");
	fd = mkstemp(path);
	ck_assert_int_ge(fd, 0);
	(void)close(fd);
	(void)snprintf(other, sizeof(other), "%s.new", path);
	net = (struct hr_netlog){.path = path};
}

static void
teardown(void)
{
	(void)unlink(path);
	(void)unlink(other);
}

static void
append(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	ck_assert_int_eq(close(fd), 0);
}

static void
expect(const char *want)
{
	HR_BUF(out, 4096);

	hr_netlog_why(&net, &out);
	ck_assert_str_eq(hr_buf_str(&out), want);
}

START_TEST(only_what_the_command_met)
{
	append(path, "1 a.test:443 a.test:443 was refused: no rule\n");
	hr_netlog_begin(&net);
	expect("");
	append(path, "2 b.test:22 b.test:22 was refused: no rule\n");
	expect("\n[Network: b.test:22 was refused: no rule.]");
	hr_netlog_begin(&net);
	expect("");
}
END_TEST

START_TEST(late_ones_are_told_with_the_next_command)
{
	hr_netlog_begin(&net);
	expect("");
	append(path, "1 x late\n2 x half");
	hr_netlog_begin(&net);
	append(path, " of it\n3 x late\n");
	expect("\n[Network: before this command began, late.]"
	       "\n[Network: before this command began, half of it.]\n[Network: late.]");
	hr_netlog_begin(&net);
	expect("");
}
END_TEST

START_TEST(equal_ones_are_counted)
{
	hr_netlog_begin(&net);
	append(
	    path, "1 a a was refused\n1 b b was refused\n2 a a was refused\n9 c a was refused\n");
	expect("\n[Network: a was refused, 3 times.]\n[Network: b was refused.]");
}
END_TEST

START_TEST(many_are_bounded)
{
	char line[64];
	int i;

	hr_netlog_begin(&net);
	for (i = 0; i < 9; i++) {
		(void)snprintf(line, sizeof(line), "1 x host%d\n", i);
		append(path, line);
	}
	append(path, "1 x host0\n");
	expect("\n[Network: host0, 2 times.]\n[Network: host1.]\n[Network: host2.]"
	       "\n[Network: host3.]\n[Network: host4.]\n[Network: 4 more refusals, which "
	       "\"handrail net log\" lists.]");
}
END_TEST

START_TEST(a_new_file_is_read_from_its_start)
{
	append(path, "1 x old\n");
	hr_netlog_begin(&net);
	append(other, "2 x new\n");
	ck_assert_int_eq(rename(other, path), 0);
	expect("\n[Network: new.]");
}
END_TEST

START_TEST(unfinished_and_odd_lines)
{
	hr_netlog_begin(&net);
	append(path, "\nword\n1 word\n  1\n7 x whole\n8 x half");
	expect("\n[Network: 1.]\n[Network: whole.]");
	append(path, " of it\n");
	expect("\n[Network: half of it.]");
}
END_TEST

START_TEST(no_file_no_lines)
{
	(void)unlink(path);
	hr_netlog_begin(&net);
	expect("");
	append(path, "1 x first\n");
	expect("\n[Network: first.]");
	net.path = NULL;
	hr_netlog_begin(&net);
	expect("");
}
END_TEST

START_TEST(only_the_end_of_a_flood_is_read)
{
	static char flood[200 << 10];
	size_t i;

	for (i = 0; i + 9 <= sizeof(flood); i += 9)
		(void)memcpy(flood + i, "1 x loop\n", 9);
	flood[sizeof(flood) - 1] = '\0';
	hr_netlog_begin(&net);
	append(path, flood);
	append(path, "\n1 x last\n");
	/* 64 KB hold "last", the rest of a line and 7,280 whole ones */
	expect("\n[Network: loop, 7280 times.]\n[Network: last.]");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("netlog");
	TCase *c = tcase_create("netlog");
	SRunner *r;
	int failed;

	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, only_what_the_command_met);
	tcase_add_test(c, late_ones_are_told_with_the_next_command);
	tcase_add_test(c, equal_ones_are_counted);
	tcase_add_test(c, many_are_bounded);
	tcase_add_test(c, a_new_file_is_read_from_its_start);
	tcase_add_test(c, unfinished_and_odd_lines);
	tcase_add_test(c, no_file_no_lines);
	tcase_add_test(c, only_the_end_of_a_flood_is_read);
	suite_add_tcase(s, c);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? 0 : 1;
}
