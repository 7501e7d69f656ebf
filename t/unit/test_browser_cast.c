/* Pictures for those who look on: what is asked of Chromium, and when it is asked again. */
#include "config.h"

#include <check.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "plugins/browser/act/keys.h"
#include "plugins/browser/browser.h"
#include "plugins/browser/browser_int.h"

static struct browser b;
static struct hr_err err;
static struct hr_watch *watch;
static int pipefd[2]; /* to "Chromium" */
static char told[65536];

static void
look(void *arg)
{
	(void)arg;
}

static void
something_was_told(void *arg)
{
	(void)arg;
	hr_loop_stop(b.loop);
}

/* A message of Chromium. */
static void
says(const char *text)
{
	hr_buf_add(&b.in, text, strlen(text) + 1);
	ck_assert_int_eq(b.in.fail, HR_OK);
	br_take(&b);
	ck_assert(!b.gone);
}

/* What Chromium was told since the last call. */
static void
listen_to(void)
{
	ssize_t i, n = read(pipefd[0], told, sizeof(told) - 1);

	n = n > 0 ? n : 0;
	for (i = 0; i < n; i++) {
		if (told[i] == '\0')
			told[i] = '\n';
	}
	told[n] = '\0';
}

static int
times(const char *method)
{
	const char *p = told;
	int n = 0;

	for (; (p = strstr(p, method)) != NULL; p++)
		n++;
	return n;
}

/* The number of the last request for pictures. */
static long long
begun(void)
{
	const char *p = told, *last = NULL;
	long long id = -1;

	for (; (p = strstr(p, "{\"id\":")) != NULL; p++) {
		if (strncmp(strchr(p, ','), ",\"method\":\"Page.startScreencast\"", 31) == 0)
			last = p;
	}
	ck_assert_ptr_nonnull(last);
	ck_assert_int_eq(sscanf(last, "{\"id\":%lld", &id), 1);
	return id;
}

static void
setup(void)
{
	ck_assert_int_eq(pipe2(pipefd, O_CLOEXEC | O_NONBLOCK), 0);
	br_init(&b);
	b.loop = hr_loop_new(&err);
	ck_assert_ptr_nonnull(b.loop);
	b.to = pipefd[1];
	watch = hr_loop_readable(b.loop, pipefd[0], something_was_told, NULL, &err);
	ck_assert_ptr_nonnull(watch);
	br_cast_to(&b, look, NULL);
	says("{\"method\":\"Target.attachedToTarget\",\"params\":{\"sessionId\":\"S1\","
	     "\"waitingForDebugger\":"
	     "true,\"targetInfo\":{\"targetId\":\"T1\",\"type\":\"page\",\"url\":\"\"}}}");
	br_use(&b, br_tab_find(&b, "T1"));
	listen_to();
	ck_assert_int_eq(times("Page.startScreencast"), 1);
}

static void
teardown(void)
{
	br_cast_to(&b, NULL, NULL);
	hr_watch_free(watch);
	br_done(&b); /* closes its end */
	hr_loop_free(b.loop);
	(void)close(pipefd[0]);
}

START_TEST(refused_while_a_page_comes)
{
	char answer[200];

	(void)snprintf(answer, sizeof(answer),
	    "{\"id\":%lld,\"error\":{\"code\":-32000,\"message\":\"Not attached to an active "
	    "page\"},"
	    "\"sessionId\":\"S1\"}",
	    begun());
	says(answer);
	listen_to();
	ck_assert_int_eq(times("Page.startScreencast"), 0); /* it would be refused again */
	says("{\"method\":\"DOM.documentUpdated\",\"params\":{},\"sessionId\":\"S1\"}");
	listen_to();
	ck_assert_int_eq(times("Page.startScreencast"), 1);
	/* that one is granted */
	(void)snprintf(
	    answer, sizeof(answer), "{\"id\":%lld,\"result\":{},\"sessionId\":\"S1\"}", begun());
	says(answer);
	says("{\"method\":\"DOM.documentUpdated\",\"params\":{},\"sessionId\":\"S1\"}");
	listen_to();
	ck_assert_int_eq(times("Page.startScreencast"), 0);
}
END_TEST

START_TEST(another_request_is_refused)
{
	char answer[200];

	(void)snprintf(answer, sizeof(answer),
	    "{\"id\":%lld,\"error\":{\"message\":\"\"},\"sessionId\":\"S1\"}", begun() - 1);
	says(answer);
	says("{\"method\":\"DOM.documentUpdated\",\"params\":{},\"sessionId\":\"S1\"}");
	listen_to();
	ck_assert_int_eq(times("Page.startScreencast"), 0);
}
END_TEST

static void
picture(void)
{
	says("{\"method\":\"Page.screencastFrame\",\"params\":{\"data\":\"AAAA\",\"sessionId\":1,"
	     "\"metadata\":"
	     "{\"deviceWidth\":1,\"deviceHeight\":1}},\"sessionId\":\"S1\"}");
}

/* Waits until Chromium is told something, for a second at most. */
static void
wait_for_news(void)
{
	struct hr_watch *patience = hr_loop_timer(b.loop, something_was_told, NULL, &err);

	ck_assert_ptr_nonnull(patience);
	ck_assert_int_eq(hr_watch_arm(patience, 1000, &err), 0);
	ck_assert_int_eq(hr_loop_run(b.loop, &err), 0);
	hr_watch_free(patience);
	listen_to();
}

static void
check_restart(bool expected)
{
	wait_for_news();
	ck_assert_int_eq(times("Page.stopScreencast"), expected);
	ck_assert_int_eq(times("Page.startScreencast"), expected);
	if (expected)
		picture(); /* the one that the restart brings */
	wait_for_news();
	ck_assert_int_eq(times("Page.screencastFrameAck"), expected);
	wait_for_news();
	ck_assert_str_eq(told, "");
}

/* of so many pictures at once */
START_TEST(at_its_pace)
{
	int i;

	for (i = 0; i < _i; i++)
		picture();
	listen_to();
	ck_assert_int_eq(times("Page.screencastFrameAck"), 0);
	wait_for_news();
	ck_assert_int_eq(times("Page.screencastFrameAck"), _i);
	/* Chromium drops a picture behind the third: a restart shows what is there now */
	check_restart(_i >= 3);
}
END_TEST

/* Pictures that were still encoded when the others were acknowledged count with them. */
START_TEST(one_by_one)
{
	int i;

	for (i = 0; i < _i; i++) {
		picture();
		wait_for_news();
		ck_assert_int_eq(times("Page.screencastFrameAck"), 1);
		ck_assert_int_eq(times("Page.startScreencast"), 0);
	}
	check_restart(_i >= 3);
}
END_TEST

/* Pictures with a rest between them are no burst. */
START_TEST(with_rests)
{
	int i;

	for (i = 0; i < 4; i++) {
		picture();
		wait_for_news();
		ck_assert_int_eq(times("Page.screencastFrameAck"), 1);
		check_restart(false);
	}
}
END_TEST

/* A key that types a character is in one place, also by its name; a keypad's key has a code alone.
 */
START_TEST(places_of_keys)
{
	static const struct {
		const char *name;
		int location; /* -1: no key */
	} rows[] = {{"Backquote", 0}, {"Digit1", 0}, {"KeyA", 0}, {"F5", 0}, {"ArrowLeft", 0},
	    {"Enter", 0}, {"Shift", 1}, {"ControlLeft", 1}, {"ControlRight", 2}, {"Numpad7", 3},
	    {"NumpadEnter", 3}, {"NoSuchKey", -1}};
	struct br_key k;
	size_t i;
	char c;

	for (c = '!'; c <= '~'; c++) {
		ck_assert_msg(br_key_find(&k, &c, 1, false), "%c", c);
		ck_assert_msg(k.text[0] == c && k.text[1] == '\0', "%c types %s", c, k.text);
		ck_assert_msg(k.location == 0, "%c is at place %d", c, k.location);
	}
	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ck_assert_int_eq(br_key_find(&k, rows[i].name, strlen(rows[i].name), false),
		    rows[i].location >= 0);
		if (rows[i].location >= 0)
			ck_assert_msg(k.location == rows[i].location, "%s", rows[i].name);
	}
}
END_TEST

/* The page's own script may have replaced what counts its timers. */
START_TEST(busy_pages)
{
	ck_assert_int_eq(br_busy_ms(-1, 500), 0);
	ck_assert_int_eq(br_busy_ms(0, 500), 0);
	ck_assert_int_eq(br_busy_ms(20.5, 500), 21);
	ck_assert_int_eq(br_busy_ms(1e300, 500), 501);
	ck_assert_int_eq(br_busy_ms(-1e300, 500), 0);
	ck_assert_int_eq(br_busy_ms((double)INFINITY, 500), 501);
	ck_assert_int_eq(br_busy_ms((double)NAN, 500), 0);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("browser_cast");
	TCase *c = tcase_create("cast"), *keys = tcase_create("keys");
	TCase *settle = tcase_create("settle");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(c, 60);
	tcase_add_checked_fixture(c, setup, teardown);
	tcase_add_test(c, refused_while_a_page_comes);
	tcase_add_test(c, another_request_is_refused);
	tcase_add_loop_test(c, at_its_pace, 1, 5);
	tcase_add_loop_test(c, one_by_one, 1, 5);
	tcase_add_test(c, with_rests);
	suite_add_tcase(s, c);
	tcase_add_test(keys, places_of_keys);
	suite_add_tcase(s, keys);
	tcase_add_test(settle, busy_pages);
	suite_add_tcase(s, settle);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
