/* session/view and session/echo: what was handed out, what is new, and the echo between them. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/view/echo.h"
#include "session/prompt/hook.h"
#include "session/view/view.h"

#define LEAVE "\033[?2004l\r"

static struct hr_view *v;

static void
setup(void)
{
	v = hr_view_new(NULL);
	ck_assert_ptr_nonnull(v);
}

static void
teardown(void)
{
	hr_view_free(v);
}

static void
feed(const char *text)
{
	hr_view_feed(v, text, strlen(text));
}

static void
check_take_echo(const char *echoed, const char *trace, const char *want)
{
	HR_BUF(out, 64u << 20);
	bool lost = true;

	ck_assert_int_eq(
	    hr_view_take(v, echoed, echoed != NULL ? strlen(echoed) : 0, trace, &out, &lost, NULL),
	    0);
	ck_assert_str_eq(hr_buf_str(&out), want);
	ck_assert(!lost);
}

static void
check_take(const char *want)
{
	check_take_echo(NULL, NULL, want);
}

static void
mark(void)
{
	ck_assert_int_eq(hr_view_mark(v, NULL), 0);
}

START_TEST(taking_does_not_hand_out)
{
	feed("a\r\nb");
	check_take("a\nb");
	check_take("a\nb");
	mark();
	check_take("");
	feed("c\r\nd");
	check_take("c\nd");
	mark();
	check_take("");
}
END_TEST

static void
check_exact(const char *want)
{
	HR_BUF(out, 64u << 20);
	bool lost = true;

	ck_assert_int_eq(hr_view_take_exact(v, NULL, 0, NULL, &out, &lost, NULL), 0);
	ck_assert_str_eq(hr_buf_str(&out), want);
	ck_assert(!lost);
}

START_TEST(exact_text_is_as_it_was_printed)
{
	check_exact("");
	feed("    a  \r\n\r\n \tb\r\n\r\n");
	check_exact("    a  \n\n        b\n\n");
	check_take("a\n\n        b");
	mark();
	check_exact("");
	feed("  c");
	check_exact("  c");
	mark();
	/* what ends the line that was handed out is nothing new */
	feed("  \r\n  d ");
	check_exact("  d ");
	feed("\r\n");
	check_exact("  d \n");
	/* one that was handed out and has changed since comes again, as a whole */
	mark();
	feed("\033[A\r  D");
	check_exact("  D ");
	hr_view_reset(v, false);
	check_exact("");
	feed("\r\n\r\n");
	check_exact("\n\n");
}
END_TEST

START_TEST(echo_is_known_by_its_place)
{
	bool over = true;

	ck_assert_uint_eq(hr_view_echo_bytes(v, "ls\r\n", 4, &over), 0);
	ck_assert(!over);
	hr_view_expect_echo(v, "ls", 2);
	ck_assert_uint_eq(hr_view_echo_bytes(v, "ls\r\n\033[?20", 9, &over), 9);
	ck_assert(!over);
	feed("ls\r\n\033[?20");
	ck_assert_uint_eq(hr_view_echo_bytes(v, "04l\rls\r\n", 8, &over), 4);
	ck_assert(over);
	feed("04l\rls\r\n");
	ck_assert_uint_eq(hr_view_echo_bytes(v, "ls", 2, &over), 0);
	check_exact("ls\n");
}
END_TEST

START_TEST(blanks_at_both_ends)
{
	feed("\r\n\r\n   x\r\n  y   \r\n\r\n");
	check_take("x\n  y");
	mark();
	feed("   \r\n  z");
	check_take("z");
}
END_TEST

START_TEST(rows_that_changed)
{
	feed("one\r\ntwo\r\nthree");
	mark();
	feed("\033[2;1Hzwei");
	check_take("zwei\nthree");
	mark();
	feed("\033[2;1Hzwei"); /* the same again */
	check_take("");
	feed("\033[3;1H\033[K"); /* the last one erased */
	check_take("");
	mark();
	feed("drei");
	check_take("drei");
	mark();
	feed("\033[H\033[2J"); /* tmux keeps the rows above the screen */
	feed("new");
	check_take("new");
}
END_TEST

START_TEST(wrapped_rows_are_one_line)
{
	char text[2601];

	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	feed(text);
	check_take(text);
	mark();
	feed("yz");
	check_take("yz");
}
END_TEST

START_TEST(the_history_limit)
{
	HR_BUF(out, 64u << 20);
	char line[32];
	bool lost;
	unsigned i;

	feed("first\r\n");
	mark();
	for (i = 0; i < 12000; i++) {
		(void)snprintf(line, sizeof(line), "%u\r\n", i);
		feed(line);
		if (i == 11000)
			mark();
	}
	/* the rows that fell off had been handed out */
	ck_assert_int_eq(hr_view_take(v, NULL, 0, NULL, &out, &lost, NULL), 0);
	ck_assert(!lost);
	ck_assert_int_eq(strncmp(out.p, "11001\n", 6), 0);
	ck_assert_str_eq(out.p + out.len - 5, "11999");
	hr_buf_reset(&out);
	for (i = 12000; i < 40000; i++) {
		(void)snprintf(line, sizeof(line), "%u\r\n", i);
		feed(line);
	}
	ck_assert_int_eq(hr_view_take(v, NULL, 0, NULL, &out, &lost, NULL), 0);
	ck_assert(lost);
	ck_assert_str_eq(out.p + out.len - 5, "39999");
	hr_buf_done(&out);
	hr_view_reset(v, false);
	feed("x");
	check_take("x");
}
END_TEST

START_TEST(what_is_too_much_fails)
{
	struct hr_err err = {0};
	HR_BUF(out, 3);
	bool lost;

	feed("four");
	ck_assert_int_eq(hr_view_take(v, NULL, 0, NULL, &out, &lost, &err), -1);
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
}
END_TEST

START_TEST(an_echo_cut_anywhere)
{
	static const char bytes[] = "ls\033[K\r\nx\033[?2004h " LEAVE HR_HOOK_STARTED "out";
	size_t n = sizeof(bytes) - 1, i, j;

	for (i = 0; i <= n; i++) {
		for (j = i; j <= n; j++) {
			hr_view_reset(v, false);
			hr_view_expect_echo(v, "ls", 2);
			ck_assert(!hr_view_echo_over(v));
			hr_view_feed(v, bytes, i);
			hr_view_feed(v, bytes + i, j - i);
			hr_view_feed(v, bytes + j, n - j);
			ck_assert(hr_view_echo_over(v));
			ck_assert_msg(hr_view_started(v), "%zu %zu", i, j);
			check_take("out");
		}
	}
}
END_TEST

START_TEST(a_wish_for_more_cut_anywhere)
{
	static const char bytes[] = "x\033" HR_HOOK_MORE "\033[?2004h";
	size_t n = sizeof(bytes) - 1, i, j;

	for (i = 0; i <= n; i++) {
		for (j = i; j <= n; j++) {
			hr_view_reset(v, false);
			hr_view_expect_more(v);
			ck_assert(hr_view_echo_over(v) && !hr_view_more(v));
			hr_view_feed(v, bytes, i);
			hr_view_feed(v, bytes + i, j - i);
			hr_view_feed(v, bytes + j, n - j);
			ck_assert_msg(hr_view_more(v) && hr_view_readline(v), "%zu %zu", i, j);
			check_take("x");
		}
	}
	/* it came as keys: nothing else tells that the command is whole */
	ck_assert(!hr_view_started(v));
	feed(HR_HOOK_STARTED);
	ck_assert(hr_view_started(v));
	hr_view_expect_more(v);
	feed(HR_HOOK_MORE HR_HOOK_STARTED);
	ck_assert(hr_view_more(v) && hr_view_started(v));
	hr_view_expect_more(v);
	feed(HR_HOOK_STARTED);
	ck_assert(!hr_view_started(v));
	hr_view_expect_more(v); /* a second one forgets what the first had found */
	ck_assert(!hr_view_more(v));
	feed(HR_HOOK_MORE);
	ck_assert(hr_view_more(v));
	hr_view_expect_echo(v, "ls", 2);
	ck_assert(!hr_view_more(v));
}
END_TEST

/* A program may print what it likes. */
START_TEST(a_wish_for_more_that_comes_late)
{
	char bytes[65536];
	int i;

	memset(bytes, '\r', sizeof(bytes));
	bytes[sizeof(bytes) - 1] = '\033'; /* held each time */
	hr_view_expect_more(v);
	for (i = 0; i < 15; i++)
		hr_view_feed(v, bytes, sizeof(bytes));
	feed(HR_HOOK_MORE);
	ck_assert(hr_view_more(v));
	hr_view_expect_more(v);
	for (i = 0; i < 16; i++)
		hr_view_feed(v, bytes, sizeof(bytes));
	feed(HR_HOOK_MORE);
	ck_assert(!hr_view_more(v));
}
END_TEST

START_TEST(what_others_print_into_an_echo)
{
	static const struct {
		const char *typed, *bytes, *rest; /* NULL: not to be recognised */
	} table[] = {
	    {"ls", "ls\r\n", ""},
	    {"ls", "L1\r\nls\r\n", "L1\r\n"},
	    {"ls", "lsL1\r\n\r\n", "L1\r\n"},
	    {"ls", "lsL1\r\nL2\r\n\r\n", "L1\r\nL2\r\n"},
	    {"a\nb", "a\r\n\rb\r\n", ""},
	    {"a\nb", "Xa\r\nY\rbZ\r\n", "XYZ"},
	    {"a\n\nb", "a\r\n\r\n\rb\r\n", ""},
	    {"a\tb", "a       b\r\n", ""},
	    {"", "L1\r\n\r\n", "L1\r\n"},
	    {"ls", "L 1\tx\r\nls\r\n", "L 1\tx\r\n"},
	    {"ls", "l s\r\n", NULL},
	    {"ls", "L\0371\r\nls\r\n", NULL},
	    {"a\037b", "a\037b\r\n", NULL},
	    {"a b", "a b\r\n", ""},
	    {"ls", "\033[7mls\033[27m\rls\r\n", NULL}, /* drawn twice, by another's settings */
	    {"ls", "ls\rls\r\n", NULL},
	    {"ls", "ls", NULL}, /* without its end */
	    {"ls", "", NULL},
	    {"a\033b", "a^[b\r\n", NULL},
	};
	struct hr_buf rest;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		bool known;

		hr_buf_init(&rest, 1000);
		hr_buf_add(&rest, ">", 1);
		known = hr_echo_remove(table[i].bytes, strlen(table[i].bytes), table[i].typed,
		    strlen(table[i].typed), &rest);
		ck_assert_msg(known == (table[i].rest != NULL), "%zu", i);
		ck_assert_msg(hr_buf_str(&rest)[0] == '>' &&
				  strcmp(hr_buf_str(&rest) + 1, known ? table[i].rest : "") == 0,
		    "%zu: %s", i, hr_buf_str(&rest));
		hr_buf_done(&rest);
	}
	hr_view_expect_echo(v, "ls", 2);
	feed("l1\r\nls\r\n" LEAVE "out");
	check_take("l1\nout");
	hr_view_reset(v, false);
	hr_view_expect_echo(v, "ls", 2);
	feed("l\033[Ds\r\nlost\r\n" LEAVE "out"); /* not known: all of it goes */
	check_take("out");
}
END_TEST

START_TEST(an_echo_of_a_long_line)
{
	static char typed[70000], bytes[70010];

	memset(typed, 'x', sizeof(typed));
	memset(bytes, 'x', sizeof(typed));
	hr_view_expect_echo(v, typed, sizeof(typed));
	hr_view_feed(v, bytes, sizeof(typed));
	feed("\r\n" LEAVE "out");
	check_take("out");
}
END_TEST

START_TEST(an_echo_that_is_not_over)
{
	feed("before");
	hr_view_expect_echo(v, "ls", 2);
	feed("echo \033[?2004");
	feed("l no \033[?2004l\n");
	ck_assert(!hr_view_echo_over(v));
	check_take("before");
	hr_view_end_echo(v);
	feed("output");
	check_take("before\noutput");
	/* a second one forgets what the first had found */
	hr_view_expect_echo(v, "ls", 2);
	feed(LEAVE HR_HOOK_STARTED);
	ck_assert(hr_view_started(v));
	hr_view_expect_echo(v, "ls", 2);
	ck_assert(!hr_view_started(v));
	feed(LEAVE);
	ck_assert(hr_view_echo_over(v));
	ck_assert(!hr_view_started(v));
}
END_TEST

START_TEST(the_line_of_a_terminal_without_readline)
{
	hr_view_expect_line(v);
	feed("set -o em");
	feed("acs\r");
	feed("\nout");
	check_take("out");
}
END_TEST

START_TEST(readline_comes_and_goes)
{
	ck_assert(!hr_view_readline(v));
	feed("\033[?2004h");
	ck_assert(hr_view_readline(v));
	hr_view_reset(v, true);
	ck_assert(hr_view_readline(v));
	hr_view_reset(v, false);
	ck_assert(!hr_view_readline(v));
	hr_view_reset(v, true); /* nothing to keep */
	ck_assert(!hr_view_readline(v));
	feed("\033[?2004h");
	hr_view_expect_echo(v, "ls", 2);
	ck_assert(!hr_view_readline(v)); /* its own echo says nothing */
	feed(LEAVE "\033[?2004h");
	ck_assert(hr_view_readline(v));
	feed("\033[?1h");
	ck_assert(hr_view_application_cursor(v));
	hr_view_expect_echo(v, "ls", 2);
	hr_view_shell_ended(v);
	ck_assert(hr_view_echo_over(v));
	ck_assert(!hr_view_readline(v));
	ck_assert(!hr_view_application_cursor(v));
	hr_view_expect_line(v);
	hr_view_shell_ended(v);
	feed("seen");
	check_take("seen");
	hr_view_expect_line(v);
	hr_view_reset(v, false);
	feed("this, too");
	check_take("this, too");
}
END_TEST

START_TEST(the_trace_of_the_hook)
{
	feed("out\r\nHOOK");
	check_take_echo(NULL, "HOOK", "out");
	check_take_echo(NULL, "OTHER", "out\nHOOK");
	mark();
	feed("\r\nHOOK");
	check_take_echo(NULL, "HOOK", "");
}
END_TEST

START_TEST(generations)
{
	uint64_t g = hr_view_generation(v);

	feed("\033[1m\033[0m\a");
	ck_assert_uint_eq(hr_view_generation(v), g);
	feed("x");
	ck_assert_uint_ne(hr_view_generation(v), g);
	g = hr_view_generation(v);
	feed("\rx");
	ck_assert_uint_eq(hr_view_generation(v), g);
	hr_view_expect_echo(v, "ls", 2);
	g = hr_view_generation(v);
	feed("echo");
	ck_assert_uint_eq(hr_view_generation(v), g);
}
END_TEST

START_TEST(answers_to_queries)
{
	char reply[64];

	feed("ab\033[6n");
	ck_assert_uint_eq(hr_view_replies(v, reply, sizeof(reply)), 6);
	ck_assert_int_eq(memcmp(reply, "\033[1;3R", 6), 0);
	ck_assert_uint_eq(hr_view_replies(v, reply, sizeof(reply)), 0);
	feed("\033[6n");
	hr_view_reset(v, false);
	ck_assert_uint_eq(hr_view_replies(v, reply, sizeof(reply)), 0);
}
END_TEST

START_TEST(echo_as_it_looks)
{
	static const struct {
		const char *text, *typed;
		size_t len;
	} cases[] = {
	    {"abc\nx", "abc", 3},
	    {"abx", "abc", 0},
	    {"ab", "abc", 0},
	    {"", "a", 0},
	    {"a", "", 0},
	    {"a       b", "a\tb", 9},
	    {"a\nb rest", "a   \n\n b", 3},
	    {"ab", "a b", 0},
	    {"a b", "ab", 0},
	    {"^Ax", "\001x", 3},
	    {"^?", "\177", 2},
	    {"^", "\177", 0},
	    {"ax", "a\377\376x", 2},
	    {"\303\251x", "\303\251", 2},
	    {"x", "\303\251", 0},
	    {"a", "a ", 0},
	};
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ck_assert_msg(hr_echo_length(cases[i].text, strlen(cases[i].text), cases[i].typed,
				  strlen(cases[i].typed)) == cases[i].len,
		    "%zu", i);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("view");
	TCase *tc = tcase_create("view");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, taking_does_not_hand_out);
	tcase_add_test(tc, blanks_at_both_ends);
	tcase_add_test(tc, rows_that_changed);
	tcase_add_test(tc, wrapped_rows_are_one_line);
	tcase_add_test(tc, the_history_limit);
	tcase_add_test(tc, what_is_too_much_fails);
	tcase_add_test(tc, an_echo_cut_anywhere);
	tcase_add_test(tc, a_wish_for_more_cut_anywhere);
	tcase_add_test(tc, a_wish_for_more_that_comes_late);
	tcase_add_test(tc, what_others_print_into_an_echo);
	tcase_add_test(tc, an_echo_of_a_long_line);
	tcase_add_test(tc, an_echo_that_is_not_over);
	tcase_add_test(tc, the_line_of_a_terminal_without_readline);
	tcase_add_test(tc, readline_comes_and_goes);
	tcase_add_test(tc, the_trace_of_the_hook);
	tcase_add_test(tc, exact_text_is_as_it_was_printed);
	tcase_add_test(tc, echo_is_known_by_its_place);
	tcase_add_test(tc, generations);
	tcase_add_test(tc, answers_to_queries);
	tcase_add_test(tc, echo_as_it_looks);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
