/* base/log and base/quote: one line an event, and no byte in it that a terminal would obey. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/loglines.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"

static char line[65536];

static const char *
logged(enum hr_log_format format, enum hr_log_level max, enum hr_log_level level, const char *text,
    size_t len)
{
	int p[2];
	ssize_t n;

	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	hr_log_setup("unit", format, max);
	hr_log_set_fd(p[1]);
	hr_log_from("unit", 42, level, text, len);
	hr_fd_close(&p[1]);
	hr_log_set_fd(STDERR_FILENO);
	n = hr_fd_read_full(p[0], line, sizeof(line) - 1, NULL);
	ck_assert_int_ge(n, 0);
	line[n] = '\0';
	hr_fd_close(&p[0]);
	return line;
}

START_TEST(wall_clock_as_text)
{
	char text[HR_WALL_TEXT];

	hr_wall_text(0, text);
	ck_assert_str_eq(text, "1970-01-01T00:00:00.000Z");
	hr_wall_text(INT64_C(1767323045678), text);
	ck_assert_str_eq(text, "2026-01-02T03:04:05.678Z");
}
END_TEST

START_TEST(text_has_time_level_module_and_one_line)
{
	const char evil[] = "a\x1b[31mb\nc\x7f\xc2\x9b\xff\xc3\xa9\r\t\0z";
	const char *l = logged(HR_LOG_TEXT, HR_LOG_INFO, HR_LOG_WARNING, evil, sizeof(evil) - 1);

	ck_assert_ptr_nonnull(strstr(l, "Z warning unit[42] a\\x1b[31mb\\x0ac\\x7f\\xc2\\x9b"
					"\\xff\xc3\xa9\\x0d\\x09\\x00z\n"));
	ck_assert_ptr_eq(strchr(l, '\n'), l + strlen(l) - 1);
	ck_assert_int_eq(l[4], '-');
	ck_assert_int_eq(l[10], 'T');
}
END_TEST

START_TEST(json_is_one_object)
{
	const char evil[] = "q\"\\\n\x01\xff\xf0\x9f\x98\x80";
	const char *l = logged(HR_LOG_JSON, HR_LOG_INFO, HR_LOG_ERROR, evil, sizeof(evil) - 1);

	ck_assert_int_eq(strncmp(l, "{\"time\":\"", 9), 0);
	ck_assert_ptr_nonnull(
	    strstr(l, "\"level\":\"error\",\"module\":\"unit\",\"pid\":42,\"message\":"
		      "\"q\\\"\\\\\\n\\u0001\xEF\xBF\xBD\xf0\x9f\x98\x80\"}\n"));
}
END_TEST

START_TEST(child_lines_carry_the_level_and_come_back)
{
	const char *l = logged(HR_LOG_CHILD, HR_LOG_DEBUG, HR_LOG_DEBUG, "hello", 5);
	size_t skip;

	ck_assert_str_eq(l, "<7>hello\n");
	ck_assert_int_eq(hr_log_child_level(l, strlen(l), &skip), HR_LOG_DEBUG);
	ck_assert_uint_eq(skip, 3);
	ck_assert_int_eq(hr_log_child_level("<1>x", 4, &skip), HR_LOG_ERROR);
	ck_assert_int_eq(hr_log_child_level("<9>x", 4, &skip), HR_LOG_INFO);
	ck_assert_uint_eq(skip, 0);
	ck_assert_int_eq(hr_log_child_level("<", 1, &skip), HR_LOG_INFO);
}
END_TEST

START_TEST(below_the_level_nothing_is_written)
{
	ck_assert_str_eq(logged(HR_LOG_TEXT, HR_LOG_WARNING, HR_LOG_INFO, "x", 1), "");
	ck_assert(!hr_log_enabled(HR_LOG_INFO));
	ck_assert(hr_log_enabled(HR_LOG_ERROR));
}
END_TEST

START_TEST(long_text_is_cut_not_lost)
{
	static char text[10000];

	memset(text, _i, sizeof(text)); /* 1 is the worst: six bytes for each in JSON */
	(void)logged(HR_LOG_JSON, HR_LOG_INFO, HR_LOG_INFO, text, sizeof(text));
	ck_assert_uint_gt(strlen(line), 2048);
	ck_assert_uint_le(strlen(line), 4096);
	ck_assert_str_eq(line + strlen(line) - 3, "\"}\n");
}
END_TEST

START_TEST(a_reader_that_stopped_costs_lines_not_time)
{
	static char text[4000];
	ssize_t n, total = 0;
	int p[2], i;

	memset(text, 'x', sizeof(text));
	ck_assert_int_eq(pipe2(p, O_CLOEXEC), 0);
	hr_log_setup("unit", HR_LOG_TEXT, HR_LOG_INFO);
	hr_log_set_fd(p[1]);
	for (i = 0; i < 50; i++) /* a pipe holds 64 KiB; check's own time limit sees a hang */
		hr_log_from("unit", 42, HR_LOG_INFO, text, sizeof(text));
	while (total < 60000 && (n = read(p[0], line, sizeof(line))) > 0)
		total += n;
	hr_log_from("unit", 42, HR_LOG_INFO, "after", 5);
	hr_fd_close(&p[1]);
	n = hr_fd_read_full(p[0], line, sizeof(line) - 1, NULL);
	ck_assert_int_gt(n, 0);
	line[n] = '\0';
	ck_assert_ptr_nonnull(strstr(line, " log lines could not be written\n"));
	ck_assert_ptr_nonnull(strstr(line, " unit[42] after\n"));
	hr_log_set_fd(STDERR_FILENO);
	hr_fd_close(&p[0]);
}
END_TEST

START_TEST(errno_is_kept)
{
	errno = EXDEV;
	(void)logged(HR_LOG_TEXT, HR_LOG_INFO, HR_LOG_INFO, "x", 1);
	hr_log_set_fd(-1);
	errno = EXDEV;
	hr_log(HR_LOG_ERROR, "to nowhere");
	ck_assert_int_eq(errno, EXDEV);
	hr_log_set_fd(STDERR_FILENO);
}
END_TEST

START_TEST(level_names)
{
	enum hr_log_level l = HR_LOG_INFO;

	ck_assert_int_eq(hr_log_level_parse("DEBUG", &l), 0);
	ck_assert_int_eq(l, HR_LOG_DEBUG);
	ck_assert_int_eq(hr_log_level_parse("Warn", &l), 0);
	ck_assert_int_eq(l, HR_LOG_WARNING);
	ck_assert_int_eq(hr_log_level_parse("loud", &l), -1);
	ck_assert_int_eq(l, HR_LOG_WARNING);
	ck_assert_str_eq(hr_log_level_name(HR_LOG_WARNING), "warning");
}
END_TEST

START_TEST(utf8_follows_the_rfc)
{
	static const struct {
		const char *s;
		size_t want;
	} rows[] = {{"a", 1}, {"\xc3\xa9", 2}, {"\xe2\x82\xac", 3}, {"\xf0\x9f\x98\x80", 4},
	    {"\x80", 0}, {"\xc0\x80", 0}, {"\xc1\xbf", 0}, {"\xe0\x9f\xbf", 0}, {"\xed\xa0\x80", 0},
	    {"\xf0\x8f\xbf\xbf", 0}, {"\xf4\x90\x80\x80", 0}, {"\xf5\x80\x80\x80", 0},
	    {"\xe2\x82", 0}, {"\xe2\x28\xa1", 0}, {"\xff", 0}, {"\xf4\x8f\xbf\xbf", 4},
	    {"\xed\x9f\xbf", 3}};

	ck_assert_uint_eq(hr_utf8_len(rows[_i].s, strlen(rows[_i].s)), rows[_i].want);
}
END_TEST

static const char *
kept(const struct hr_loglines *l, uint64_t from, size_t most)
{
	static struct hr_buf b;

	hr_buf_done(&b);
	hr_buf_init(&b, 1u << 20);
	hr_loglines_put(l, from, most, &b);
	(void)snprintf(line, sizeof(line), "%s", hr_buf_str(&b));
	hr_buf_done(&b);
	return line;
}

START_TEST(last_lines_are_kept_and_numbered)
{
	struct hr_loglines l;
	char text[1000];
	HR_FREE char *p = NULL;
	int i;

	hr_loglines_init(&l);
	ck_assert_int_gt(l.epoch, 0);
	l.epoch = 7;
	ck_assert_str_eq(kept(&l, 0, 4096), "{\"first\":1,\"next\":1,\"epoch\":7,\"lines\":[]}");
	hr_loglines_add(&l, "{1}", 3);
	hr_loglines_add(&l, "{2}", 3);
	hr_loglines_add(&l, "{3}", 3);
	ck_assert_str_eq(
	    kept(&l, 0, 4096), "{\"first\":1,\"next\":4,\"epoch\":7,\"lines\":[{1},{2},{3}]}");
	ck_assert_str_eq(kept(&l, 3, 4096), "{\"first\":3,\"next\":4,\"epoch\":7,\"lines\":[{3}]}");
	ck_assert_str_eq(kept(&l, 4, 4096), "{\"first\":4,\"next\":4,\"epoch\":7,\"lines\":[]}");
	/* of another count; those that do not fit; none */
	ck_assert_str_eq(
	    kept(&l, 99, 4096), "{\"first\":1,\"next\":4,\"epoch\":7,\"lines\":[{1},{2},{3}]}");
	ck_assert_str_eq(
	    kept(&l, 0, 9), "{\"first\":2,\"next\":4,\"epoch\":7,\"lines\":[{2},{3}]}");
	ck_assert_str_eq(kept(&l, 0, 0), "{\"first\":4,\"next\":4,\"epoch\":7,\"lines\":[]}");
	memset(text, 'x', sizeof(text));
	for (i = 0; i < 1000; i++)
		hr_loglines_add(&l, text, sizeof(text));
	ck_assert_uint_le(l.text.len, HR_LOGLINES_KEPT);
	ck_assert_uint_eq(l.next, 1004);
	ck_assert_uint_eq((l.next - l.first) * (sizeof(text) + 1), l.text.len);
	p = malloc(HR_LOGLINES_KEPT);
	ck_assert_ptr_nonnull(p);
	memset(p, 'y', HR_LOGLINES_KEPT);
	hr_loglines_add(&l, p, HR_LOGLINES_KEPT); /* longer than all that is kept */
	ck_assert_uint_eq(l.next, 1004);
	hr_loglines_add(&l, p, HR_LOGLINES_KEPT - 1); /* as long */
	ck_assert_uint_eq(l.next, 1005);
	ck_assert_uint_eq(l.first, 1004);
	hr_loglines_done(&l);
}
END_TEST

static bool
is_told(int ep)
{
	struct epoll_event e;

	return epoll_wait(ep, &e, 1, 0) == 1;
}

/* Two that wait learn of each line, and neither takes it from the other. */
START_TEST(who_waits_is_told)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};
	struct hr_loglines l;
	int ep[2], i, fd;

	hr_loglines_init(&l);
	hr_loglines_add(&l, "{1}", 3);
	fd = hr_loglines_news(&l, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(hr_loglines_news(&l, NULL), fd);
	for (i = 0; i < 2; i++) {
		ep[i] = epoll_create1(EPOLL_CLOEXEC);
		ck_assert_int_eq(epoll_ctl(ep[i], EPOLL_CTL_ADD, fd, &e), 0);
		ck_assert(!is_told(ep[i]));
	}
	for (i = 0; i < 3; i++) {
		hr_loglines_add(&l, "{2}", 3);
		ck_assert(is_told(ep[0]));
		ck_assert(!is_told(ep[0]));
		ck_assert(is_told(ep[1]));
	}
	hr_fd_close(&ep[0]);
	hr_fd_close(&ep[1]);
	hr_loglines_done(&l);
	ck_assert_int_eq(l.news, -1);
}
END_TEST

/* What no reader of the log takes is among them, and what is not logged is not. */
START_TEST(kept_whoever_reads)
{
	struct hr_loglines l;
	const char *k;

	hr_loglines_init(&l);
	l.epoch = 9;
	hr_log_keep(&l);
	(void)logged(HR_LOG_TEXT, HR_LOG_INFO, HR_LOG_WARNING, "one\n\"two\"\x1b", 10);
	(void)logged(HR_LOG_TEXT, HR_LOG_INFO, HR_LOG_DEBUG, "not this", 8);
	hr_log_keep(NULL);
	(void)logged(HR_LOG_TEXT, HR_LOG_INFO, HR_LOG_WARNING, "nor this", 8);
	k = kept(&l, 0, 4096);
	ck_assert_ptr_nonnull(
	    strstr(k, "{\"first\":1,\"next\":2,\"epoch\":9,\"lines\":[{\"time\":\""));
	ck_assert_ptr_nonnull(strstr(k, "Z\",\"level\":\"warning\",\"module\":\"unit\",\"pid\":42,"
					"\"message\":\"one\\n\\\"two\\\"\\u001b\"}]}"));
	hr_loglines_done(&l);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("log");
	TCase *tc = tcase_create("log");
	SRunner *sr;
	int failed;

	tcase_add_test(tc, wall_clock_as_text);
	tcase_add_test(tc, text_has_time_level_module_and_one_line);
	tcase_add_test(tc, json_is_one_object);
	tcase_add_test(tc, child_lines_carry_the_level_and_come_back);
	tcase_add_test(tc, below_the_level_nothing_is_written);
	tcase_add_loop_test(tc, long_text_is_cut_not_lost, 1, 3);
	tcase_add_test(tc, a_reader_that_stopped_costs_lines_not_time);
	tcase_add_test(tc, errno_is_kept);
	tcase_add_test(tc, level_names);
	tcase_add_test(tc, last_lines_are_kept_and_numbered);
	tcase_add_test(tc, who_waits_is_told);
	tcase_add_test(tc, kept_whoever_reads);
	tcase_add_loop_test(tc, utf8_follows_the_rfc, 0, 17);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
