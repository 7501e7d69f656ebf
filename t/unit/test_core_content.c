/* session/core and session/view: what of the terminal's text an observation holds (doc/shell.md,
 * "Content"). */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core_check.h"

/* ---- several observations ---- */

START_TEST(each_observation_holds_what_is_new)
{
	unsigned i;
	char line[2] = "1";

	ASK(&f, "loop", .timeout = 2.5);
	fake_begin(&f);
	for (i = 0; i < 5; i++, line[0]++) {
		if (i > 0)
			ASK(&f, "", .timeout = 2.5);
		fake_out(&f, line);
		fake_out(&f, "\n");
		fake_wait(&f, 2500);
		ck_assert_str_eq(f.last.content, line);
		ck_assert_str_eq(f.last.prefix, i == 0 ? "" : FAKE_BELOW);
	}
	ASK(&f, "");
	fake_prompt(&f, 0);
	check_completed(6, "", 0);
}
END_TEST

START_TEST(a_line_that_grows)
{
	leave_running("1 2 3 ");
	ck_assert_str_eq(f.last.content, "1 2 3");
	ASK(&f, "");
	fake_out(&f, "4 5 ");
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	ck_assert_str_eq(f.last.content, "4 5");
	ASK(&f, "");
	fake_out(&f, "6\n");
	fake_prompt(&f, 0);
	check_completed(3, "6", 0);
}
END_TEST

START_TEST(a_progress_bar)
{
	leave_running("start\nprogress 3");
	ASK(&f, "");
	fake_out(&f, "\rprogress 5");
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	check_result(2, "progress 5", FAKE_BELOW, FAKE_NO_OUTPUT);
	ASK(&f, "");
	fake_out(&f, "\rprogress 10\nend\n");
	fake_prompt(&f, 0);
	check_completed(3, "progress 10\nend", 0);
}
END_TEST

START_TEST(text_that_was_taken_back)
{
	leave_running("a\nb\nc");
	ASK(&f, "");
	fake_out(&f, "\r\033[K\033[A\033[K"); /* c and b are erased: nothing is new */
	fake_wait(&f, 2 * FAKE_NO_CHANGE_MS);
	ck_assert_str_eq(f.last.content, "");
	ASK(&f, "");
	fake_out(&f, "B\n");
	fake_wait(&f, 2 * FAKE_NO_CHANGE_MS);
	ck_assert_str_eq(f.last.content, "B");
}
END_TEST

START_TEST(the_alternate_screen)
{
	leave_running("before\n");
	ASK(&f, "");
	fake_out(&f, "\033[?1049h\033[Htitle\n\n  menu  \n    \n    ");
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	ck_assert_str_eq(f.last.content, "title\n\n  menu");
	/* unchanged: nothing, whatever blanks it ends in */
	ASK(&f, "");
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	ck_assert_str_eq(f.last.content, "");
	/* changed: the whole screen */
	ASK(&f, "");
	fake_out(&f, "\033[HTITLE");
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	ck_assert_str_eq(f.last.content, "TITLE\n\n  menu");
	/* left: what the main screen gained */
	ASK(&f, "");
	fake_out(&f, "\033[?1049lafter\n");
	fake_prompt(&f, 0);
	check_completed(5, "after", 0);
}
END_TEST

START_TEST(an_editor_leaves_nothing)
{
	ASK(&f, "vi f");
	fake_begin(&f);
	fake_out(&f, "\033[?1049h\033[H~\n~\n\"f\" 1L");
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	ck_assert_str_eq(f.last.content, "~\n~\n\"f\" 1L");
	ASK(&f, ":wq", .is_input = true);
	fake_out(&f, "\033[?1049l");
	fake_prompt(&f, 0);
	check_completed(2, "", 0);
}
END_TEST

START_TEST(output_after_the_prompt_comes_next)
{
	fake_out(&f, "LATE\n");
	ASK(&f, "echo now");
	fake_begin(&f);
	fake_out(&f, "now\n[1]+  Done\n");
	fake_prompt(&f, 0);
	check_completed(1, "LATE\nnow\n[1]+  Done", 0);
	fake_out(&f, "half a line");
	ASK(&f, "echo now");
	fake_begin(&f);
	fake_out(&f, "now\n");
	fake_prompt(&f, 0);
	check_completed(2, "half a line\nnow", 0);
}
END_TEST

START_TEST(output_after_the_prompt_does_not_hide_it)
{
	ASK(&f, "x &");
	fake_begin(&f);
	fake_out(&f, "[1] 7\n");
	fake_report(&f, 0);
	check_completed(1, "[1] 7", 0);
	fake_out(&f, "noise\n");
	fake_readline(&f);
	fake_out(&f, "noise\n");
	ASK(&f, "true");
	ck_assert_uint_gt(f.typed.len, 0);
}
END_TEST

/* ---- echo ---- */

START_TEST(the_echo_of_a_command_never_shows)
{
	static const char bytes[] =
	    "cat <<E\r\n\r\nx\r\nE\033[?2004l\r" HR_HOOK_STARTED "\r\nx\r\n";
	size_t cut;

	for (cut = 0; cut < sizeof(bytes) - 1; cut++) {
		ASK(&f, "cat <<E\n\nx\nE");
		fake_bytes(&f, bytes, cut);
		fake_bytes(&f, bytes + cut, sizeof(bytes) - 1 - cut);
		fake_prompt(&f, 0);
		check_completed((unsigned)cut + 1, "x", 0);
	}
}
END_TEST

START_TEST(output_like_the_command_stays)
{
	ASK(&f, "echo hi");
	fake_begin(&f);
	fake_out(&f, "echo hi\n");
	fake_prompt(&f, 0);
	check_completed(1, "echo hi", 0);
}
END_TEST

/* What is typed, how the terminal shows it, what then must be left. */
static void
check_echo(bool echoes, const char *typed, const char *shown, const char *content)
{
	unsigned n = f.results;

	leave_running("$ ");
	f.echoes = echoes;
	ASK(&f, typed, .is_input = true);
	fake_out(&f, shown);
	fake_prompt(&f, 0);
	check_completed(n + 2, content, 0);
	fake_forget(&f);
}

START_TEST(the_echo_of_input)
{
	check_echo(true, "John", "John\nHello John\n", "Hello John");
	check_echo(true, "John", "John\nJohn\n", "John");
	check_echo(true, "John", "Johnny\n", "ny");             /* cat -u in raw mode, say */
	check_echo(true, "John", "tick\nJohn\n", "tick\nJohn"); /* only at the very start */
	/* nothing was echoed: nothing may go */
	check_echo(false, "secret", "secret\n", "secret");
	/* as the terminal shows it: tabs are blanks, line ends are stripped, control characters */
	check_echo(true, "a\tb", "a\tb\nA B\n", "A B");
	check_echo(true, "a  \nb", "a  \nb\nboth\n", "both");
	check_echo(true, "a\x01z", "a^Az\ngot it\n", "got it");
	check_echo(true, "caf\xc3\xa9", "caf\xc3\xa9\nok\n", "ok");
}
END_TEST

START_TEST(what_a_key_shows_stays)
{
	leave_running("serving\n");
	ASK(&f, "C-c", .is_input = true);
	ck_assert_str_eq(hr_buf_str(&f.typed), "\003");
	fake_out(&f, "^C\nstopped\n");
	fake_prompt(&f, 0);
	check_result(
	    2, "^C\nstopped", "", "\n[The command completed with exit code 0. CTRL+C was sent.]");
}
END_TEST

START_TEST(input_that_is_echoed_and_nothing_more)
{
	leave_running("");
	ASK(&f, "hello there", .is_input = true);
	fake_out(&f, "hello there\nhello there\n");
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	check_result(2, "hello there", FAKE_BELOW, FAKE_NO_OUTPUT);
	ASK(&f, "C-d", .is_input = true);
	ck_assert_str_eq(hr_buf_str(&f.typed) + f.typed.len - 1, "\004");
	fake_prompt(&f, 0);
	check_result(3, "", "", "\n[The command completed with exit code 0. CTRL+D was sent.]");
}
END_TEST

/* ---- truncation ---- */

static void
out_lines(unsigned from, unsigned to)
{
	char line[32];
	HR_BUF(b, 64u << 20);

	for (; from <= to; from++) {
		(void)snprintf(line, sizeof(line), "Line %u\r\n", from);
		hr_buf_adds(&b, line);
	}
	fake_bytes(&f, b.p, b.len);
}

START_TEST(long_output_is_cut_in_the_middle)
{
	HR_FREE char *text = malloc(30002);

	ck_assert_ptr_nonnull(text);
	memset(text, 'x', 30001);
	text[30001] = '\0';
	memcpy(text, "head", 4);
	memcpy(text + 29997, "tail", 4);
	ASK(&f, "x");
	fake_begin(&f);
	fake_out(&f, text);
	fake_prompt(&f, 0);
	ck_assert_uint_eq(f.last.content_len, 30047);
	ck_assert(memcmp(f.last.content, "headx", 5) == 0);
	ck_assert_str_eq(f.last.content + 30047 - 5, "xtail");
	ck_assert(memcmp(f.last.content + 15000,
		      "\n[... Observation truncated due to length ...]\n", 47) == 0);
	ck_assert_str_eq(f.last.prefix, "");
	/* not when hidden; not at 30 000 */
	ASK(&f, "x", .hidden = true);
	fake_begin(&f);
	fake_out(&f, text);
	fake_prompt(&f, 0);
	ck_assert_str_eq(f.last.content, text);
	ASK(&f, "x");
	fake_begin(&f);
	fake_out(&f, text + 1);
	fake_prompt(&f, 0);
	ck_assert_str_eq(f.last.content, text + 1);
}
END_TEST

START_TEST(lost_lines_are_told)
{
	char prefix[200];
	const char *p;
	unsigned first, n = 1;

	ASK(&f, "x", .hidden = true);
	fake_begin(&f);
	out_lines(1, 50000);
	fake_prompt(&f, 0);
	ck_assert_int_eq(sscanf(f.last.content, "Line %u\n", &first), 1);
	/* the oldest kept line must be between 38 638 and 40 000 */
	ck_assert_uint_ge(first, 38638);
	ck_assert_uint_le(first, 40000);
	for (p = f.last.content; (p = strchr(p, '\n')) != NULL; p++)
		n++;
	(void)snprintf(prefix, sizeof(prefix),
	    "[Previous command outputs are truncated. Showing the last %u lines of the output "
	    "below.]\n",
	    n);
	ck_assert_str_eq(f.last.prefix, prefix);
	ck_assert_uint_eq(n, 50000 - first + 1);
	/* and the next command knows nothing of it */
	ASK(&f, "y");
	fake_begin(&f);
	fake_out(&f, "y\n");
	fake_prompt(&f, 0);
	check_completed(2, "y", 0);
}
END_TEST

START_TEST(cleared_lines_are_not_lost)
{
	ASK(&f, "clear");
	fake_begin(&f);
	fake_out(&f, "x\n\033[H\033[2J\033[3Jy\n");
	fake_prompt(&f, 0);
	check_completed(1, "y", 0);
}
END_TEST

START_TEST(lost_lines_in_later_observations)
{
	leave_running("seen\n");
	ASK(&f, "", .timeout = 1);
	out_lines(1, 9000); /* the seen one is still there */
	fake_wait(&f, 1000);
	ck_assert_str_eq(f.last.prefix, FAKE_BELOW);
	ck_assert_ptr_nonnull(strstr(f.last.content, "Line 1\n"));
	/* only lines that were handed out fall off: nothing is lost */
	ASK(&f, "", .timeout = 1, .hidden = true);
	out_lines(9001, 12000);
	fake_wait(&f, 1000);
	ck_assert_str_eq(f.last.prefix, FAKE_BELOW);
	ck_assert_int_eq(strncmp(f.last.content, "Line 9001\n", 10), 0);
	ASK(&f, "", .timeout = 1, .hidden = true);
	out_lines(12001, 40000);
	fake_wait(&f, 1000);
	ck_assert_ptr_nonnull(strstr(f.last.prefix, "Previous command outputs are truncated."));
	ck_assert_ptr_nonnull(strstr(f.last.prefix, "below.]\n" FAKE_BELOW));
	ASK(&f, "");
	out_lines(40001, 80000);
	fake_prompt(&f, 0);
	ck_assert_int_eq(strncmp(f.last.prefix, "[Previous command", 17), 0);
	ck_assert_ptr_null(strstr(f.last.prefix, "Below"));
	ck_assert_ptr_nonnull(strstr(f.last.content, "Line 80000"));
}
END_TEST

static TCase *
content_case(void)
{
	TCase *tc = tcase_create("content");

	tcase_add_checked_fixture(tc, core_setup, core_teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, each_observation_holds_what_is_new);
	tcase_add_test(tc, a_line_that_grows);
	tcase_add_test(tc, a_progress_bar);
	tcase_add_test(tc, text_that_was_taken_back);
	tcase_add_test(tc, the_alternate_screen);
	tcase_add_test(tc, an_editor_leaves_nothing);
	tcase_add_test(tc, output_after_the_prompt_comes_next);
	tcase_add_test(tc, output_after_the_prompt_does_not_hide_it);
	tcase_add_test(tc, the_echo_of_a_command_never_shows);
	tcase_add_test(tc, output_like_the_command_stays);
	tcase_add_test(tc, the_echo_of_input);
	tcase_add_test(tc, what_a_key_shows_stays);
	tcase_add_test(tc, input_that_is_echoed_and_nothing_more);
	tcase_add_test(tc, long_output_is_cut_in_the_middle);
	tcase_add_test(tc, lost_lines_are_told);
	tcase_add_test(tc, cleared_lines_are_not_lost);
	tcase_add_test(tc, lost_lines_in_later_observations);
	return tc;
}

int
main(void)
{
	Suite *s = suite_create("core_content");
	SRunner *sr;
	int failed;

	suite_add_tcase(s, content_case());
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
