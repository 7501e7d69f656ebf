/* session/core: what the client is told. The decision table, the outcomes word for word, the clocks
 * (doc/shell.md, "The decision" and "Outcomes"). */
#include "config.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core_check.h"

/* ---- the decision table ---- */

START_TEST(row_1_empty_and_nothing_runs)
{
	static const char *const blanks[] = {"", " \t\n", "\xc2\xa0\xe3\x80\x80", "\x1c\x1f"};
	size_t i;

	for (i = 0; i < sizeof(blanks) / sizeof(blanks[0]); i++) {
		/* row 1 wins over row 2 */
		ASK(&f, blanks[i], .is_input = i % 2 == 1, .hidden = i == 2);
		check_result((unsigned)i + 1,
		    "ERROR: No previous running command to retrieve logs from.", "", "");
		check_no_metadata();
		ck_assert_str_eq(f.last.command, "");
		ck_assert_int_eq(f.last.hidden, i == 2);
	}
	check_nothing_typed();
	ck_assert(!hr_core_running(f.core));
}
END_TEST

START_TEST(row_2_input_and_nothing_runs)
{
	static const char *const texts[] = {"y", "C-c", "ls\npwd", "Enter"};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		ASK(&f, texts[i], .is_input = true);
		check_result((unsigned)i + 1,
		    "ERROR: No previous running command to interact with.", "", "");
		check_no_metadata();
		ck_assert_str_eq(f.last.command, "");
	}
	check_nothing_typed();
}
END_TEST

#define REFUSAL                                                                                    \
	"ERROR: Cannot execute multiple commands at once.\n"                                       \
	"Please run each command separately OR chain them into a single command via && or ;\n"     \
	"Provided commands:\n(1) ls\n(2) pwd"

START_TEST(row_3_more_than_one_command)
{
	ASK(&f, "\nls\npwd  ");
	ck_assert_uint_eq(f.results, 1);
	ck_assert(f.last.is_error);
	ck_assert_str_eq(f.last.content, REFUSAL);
	check_nothing_typed();
	ASK(&f, "");
	ck_assert_str_eq(
	    f.last.content, "ERROR: No previous running command to retrieve logs from.");
}
END_TEST

START_TEST(row_3_while_something_runs)
{
	leave_running("a\n");
	ASK(&f, "ls\npwd");
	ck_assert(f.last.is_error);
	ck_assert_str_eq(f.last.content, REFUSAL);
	check_nothing_typed();
	/* what was reported is unchanged */
	fake_out(&f, "b\n");
	fake_prompt(&f, 0);
	ASK(&f, "");
	check_completed(3, "b", 0);
}
END_TEST

START_TEST(row_3_is_not_for_input)
{
	leave_running("");
	ASK(&f, "ls\npwd", .is_input = true);
	ck_assert_str_eq(hr_buf_str(&f.typed), "ls\npwd\r");
	ck_assert(hr_core_busy(f.core));
}
END_TEST

START_TEST(comments_are_no_commands)
{
	ASK(&f, "# build\nmake");
	ck_assert_str_eq(hr_buf_str(&f.typed), "\033[200~# build\nmake\033[201~\r");
}
END_TEST

static const char refused[] =
    "\n[Your command \"echo \"x\"\" is NOT executed. The previous command is still running - You "
    "CANNOT send new commands until the previous command is completed. By setting `is_input` to "
    "`true`, you can interact with the current process: " FAKE_ADVICE "]";

START_TEST(row_4_another_command_while_one_runs)
{
	leave_running("one\n");
	fake_out(&f, "two\n");
	ASK(&f, " echo \"x\" ", .hidden = true);
	check_result(2, "two", FAKE_BELOW, refused);
	ck_assert_str_eq(f.last.command, "echo \"x\"");
	ck_assert(f.last.hidden);
	check_no_metadata();
	check_nothing_typed();
	ASK(&f, "echo \"x\"");
	check_result(3, "", FAKE_BELOW, refused);
	fake_prompt(&f, 7);
	ASK(&f, "");
	check_completed(4, "", 7);
}
END_TEST

START_TEST(row_4_special_keys_need_is_input)
{
	leave_running("");
	ASK(&f, "C-c");
	ck_assert_ptr_nonnull(strstr(f.last.suffix, "Your command \"C-c\" is NOT executed."));
	check_nothing_typed();
}
END_TEST

START_TEST(row_5_the_old_command_has_ended)
{
	leave_running("a\n");
	fake_out(&f, "rest");
	fake_prompt(&f, 3);
	ASK(&f, "new");
	ck_assert_str_eq(hr_buf_str(&f.typed), "\033[200~new\033[201~\r");
	fake_begin(&f);
	fake_out(&f, "fresh\n");
	fake_prompt(&f, 0);
	/* rest of the old, LF, new: no echo, no blank lines */
	check_completed(2, "rest\nfresh", 0);
	ck_assert_str_eq(f.last.command, "new");
}
END_TEST

START_TEST(row_5_without_a_rest_or_new_output)
{
	leave_running("a");
	fake_prompt(&f, 3);
	ASK(&f, "new");
	fake_begin(&f);
	fake_out(&f, "fresh\n");
	fake_prompt(&f, 0);
	check_completed(2, "fresh", 0);
	leave_running("a\n");
	fake_out(&f, "rest\n");
	fake_prompt(&f, 3);
	ASK(&f, "new");
	fake_begin(&f);
	fake_prompt(&f, 1);
	check_completed(4, "rest", 1);
}
END_TEST

START_TEST(row_6_input_for_a_command_that_has_ended)
{
	static const char *const texts[] = {"rm -rf x", "C-c", "ls\npwd", "Up"};
	size_t i;

	for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		leave_running("a\n");
		fake_out(&f, "b\n");
		fake_prompt(&f, 4);
		ASK(&f, texts[i], .is_input = true);
		/* not typed into the shell; the plain suffix even for a special key */
		check_completed(2 * (unsigned)i + 2, "b", 4);
		ck_assert_str_eq(f.last.command, texts[i]);
		check_nothing_typed();
	}
}
END_TEST

START_TEST(row_6_a_later_prompt_does_not_change_the_exit_code)
{
	leave_running("");
	fake_prompt(&f, 4);
	fake_prompt(&f, 0); /* a signal at rest, say */
	ASK(&f, "");
	check_completed(2, "", 4);
}
END_TEST

START_TEST(row_6_input_to_the_program)
{
	leave_running("Enter name:");
	ck_assert_str_eq(f.last.content, "Enter name:");
	ASK(&f, "  John\n", .is_input = true);
	ck_assert_str_eq(hr_buf_str(&f.typed), "John\r");
	ck_assert(!f.literal);
	fake_out(&f, "John\nHello John\n");
	fake_prompt(&f, 0);
	check_completed(2, "Hello John", 0);
	ck_assert_str_eq(f.last.command, "John");
}
END_TEST

START_TEST(row_7_waiting_for_the_end)
{
	leave_running("a\n");
	ASK(&f, "", .is_input = true, .hidden = true); /* is_input makes no difference */
	check_nothing_typed();
	ck_assert(hr_core_busy(f.core));
	fake_out(&f, "b\n");
	fake_prompt(&f, 0);
	check_completed(2, "b", 0);
	ck_assert(f.last.hidden);
	leave_running("");
	fake_prompt(&f, 9);
	ASK(&f, "");
	check_completed(4, "", 9); /* at once */
}
END_TEST

START_TEST(row_8_a_command)
{
	ASK(&f, " echo \\; a\tb ! ");
	ck_assert_str_eq(hr_buf_str(&f.typed), "\033[200~echo \\; a\tb !\033[201~\r");
	ck_assert(!f.literal);
	ck_assert(hr_core_busy(f.core));
	ck_assert(hr_core_running(f.core));
	fake_begin(&f);
	fake_out(&f, "x\ny\n");
	fake_prompt(&f, 0);
	check_completed(1, "x\ny", 0);
	ck_assert_str_eq(f.last.command, "echo \\; a\tb !");
	ck_assert(!hr_core_running(f.core));
	ck_assert(!hr_core_busy(f.core));
}
END_TEST

/* ---- outcomes and clocks ---- */

START_TEST(outcome_b)
{
	ASK(&f, "sleep 100", .hidden = true);
	fake_begin(&f);
	fake_wait(&f, FAKE_NO_CHANGE_MS - 1);
	ck_assert_uint_eq(f.results, 0);
	fake_wait(&f, 1);
	check_result(1, "", "", FAKE_NO_OUTPUT);
	ck_assert_int_eq(f.last.clock, HR_CLOCK_NO_OUTPUT);
	check_no_metadata();
	ck_assert(f.last.hidden);
	ck_assert_str_eq(f.last.command, "sleep 100");
	ASK(&f, "");
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	check_result(2, "", FAKE_BELOW, FAKE_NO_OUTPUT);
	ck_assert_str_eq(f.last.command, "");
}
END_TEST

/* Where the core changes in between, output that was not looked at yet counts as a change. */
#ifndef FAKE_RESUMES
START_TEST(only_visible_changes_count_as_output)
{
	ASK(&f, "spin");
	fake_begin(&f);
	fake_out(&f, "x");
	fake_wait(&f, 9000);
	fake_out(&f, "\033[31m\033[5;5H\033[H\a\rx   "); /* nothing that could be seen */
	fake_wait(&f, 999);
	ck_assert_uint_eq(f.results, 0);
	fake_wait(&f, 1);
	ck_assert_uint_eq(f.results, 1);
	ASK(&f, "");
	fake_wait(&f, 9000);
	fake_out(&f, "\ry"); /* a change */
	fake_wait(&f, 9999);
	ck_assert_uint_eq(f.results, 1);
	fake_wait(&f, 1);
	check_result(2, "y", FAKE_BELOW, FAKE_NO_OUTPUT);
}
END_TEST

/* What comes within a hundredth of the time may be looked at together. */
START_TEST(a_flood_is_looked_at_now_and_then)
{
	unsigned i;

	ASK(&f, "spin");
	fake_begin(&f);
	for (i = 0; i < 500; i++) {
		fake_out(&f, i == 250 ? "x" : "\033[m");
		fake_wait(&f, 10);
	}
	fake_wait(&f, FAKE_NO_CHANGE_MS - 2500 - 1);
	ck_assert_uint_eq(f.results, 0);
	fake_wait(&f, 1 + FAKE_NO_CHANGE_MS / 100);
	check_result(1, "x", "", FAKE_NO_OUTPUT);
}
END_TEST
#else
/* A core that never let itself be kept would pass all tests with successors. */
START_TEST(successors_take_over)
{
	unsigned before = f.resumed;

	ASK(&f, "x");
	fake_begin(&f);
	fake_out(&f, "y\n");
	fake_prompt(&f, 0);
	check_completed(1, "y", 0);
	ck_assert_uint_gt(f.resumed, before + 1);
}
END_TEST
#endif

static void
check_timeout(double seconds, int64_t ms, const char *text)
{
	char suffix[700];

	ASK(&f, "x", .blocking = true, .timeout = seconds);
	fake_begin(&f);
	if (ms > 0)
		fake_wait(&f, ms - 1);
	ck_assert_uint_eq(f.results + 1, f.requests);
	fake_wait(&f, ms > 0 ? 1 : 0);
	(void)snprintf(suffix, sizeof(suffix),
	    "\n[The command timed out after %s seconds. " FAKE_ADVICE "]", text);
	check_result(f.requests, "", "", suffix);
	check_no_metadata();
	fake_prompt(&f, 0);
	ASK(&f, "");
	fake_forget(&f);
}

START_TEST(outcome_c)
{
	check_timeout(5, 5000, "5.0");
	check_timeout(2.5, 2500, "2.5");
	check_timeout(0.1, 100, "0.1");
	check_timeout(120, 120000, "120.0");
	check_timeout(1e-5, 1, "1e-05");
	check_timeout(-1, 0, "-1.0");
	check_timeout(-INFINITY, 0, "-inf");
}
END_TEST

START_TEST(time_outs_that_never_come)
{
	static const double never[] = {1e16, 1e300, INFINITY, NAN};
	size_t i;

	for (i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		ASK(&f, "x", .blocking = true, .timeout = never[i]);
		fake_begin(&f);
		fake_wait(&f, INT64_C(3000000000));
		ck_assert_uint_eq(f.results, i);
		fake_prompt(&f, 0);
		check_completed((unsigned)i + 1, "", 0);
	}
	/* zero: none */
	ASK(&f, "x", .blocking = true, .timeout = 0);
	fake_begin(&f);
	fake_wait(&f, INT64_C(3000000000));
	ck_assert(hr_core_busy(f.core));
}
END_TEST

START_TEST(both_clocks_due_no_output_wins)
{
	ASK(&f, "x", .timeout = 10);
	fake_begin(&f);
	f.now += 10000; /* one look, both due */
	hr_core_timer(f.core, f.now);
	check_result(1, "", "", FAKE_NO_OUTPUT);
}
END_TEST

START_TEST(both_clocks_run)
{
	unsigned i;

	ASK(&f, "x", .timeout = 12.5);
	fake_begin(&f);
	for (i = 0; i < 12; i++) {
		fake_wait(&f, 1000);
		fake_out(&f, ".");
	}
	ck_assert_uint_eq(f.results, 0);
	fake_wait(&f, 500);
	ck_assert_ptr_nonnull(strstr(f.last.suffix, "timed out after 12.5 seconds."));
	ck_assert_int_eq(f.last.clock, HR_CLOCK_HARD);
	ck_assert_str_eq(f.last.content, "............");
}
END_TEST

START_TEST(blocking_turns_the_no_output_clock_off)
{
	ASK(&f, "x", .blocking = true);
	fake_begin(&f);
	ck_assert(hr_core_deadline(f.core) == INT64_MAX);
	fake_wait(&f, 100 * FAKE_NO_CHANGE_MS);
	ck_assert_uint_eq(f.results, 0);
	fake_prompt(&f, 0);
	check_completed(1, "", 0);
}
END_TEST

START_TEST(completion_comes_before_a_clock)
{
	ASK(&f, "x", .timeout = 1);
	fake_begin(&f);
	f.now += 1000;
	fake_prompt(&f, 0); /* the event is served before the timer */
	hr_core_timer(f.core, f.now);
	check_completed(1, "", 0);
}
END_TEST

static TCase *
table_case(void)
{
	TCase *tc = tcase_create("table");

	tcase_add_checked_fixture(tc, core_setup, core_teardown);
	tcase_add_test(tc, row_1_empty_and_nothing_runs);
	tcase_add_test(tc, row_2_input_and_nothing_runs);
	tcase_add_test(tc, row_3_more_than_one_command);
	tcase_add_test(tc, row_3_while_something_runs);
	tcase_add_test(tc, row_3_is_not_for_input);
	tcase_add_test(tc, comments_are_no_commands);
	tcase_add_test(tc, row_4_another_command_while_one_runs);
	tcase_add_test(tc, row_4_special_keys_need_is_input);
	tcase_add_test(tc, row_5_the_old_command_has_ended);
	tcase_add_test(tc, row_5_without_a_rest_or_new_output);
	tcase_add_test(tc, row_6_input_for_a_command_that_has_ended);
	tcase_add_test(tc, row_6_a_later_prompt_does_not_change_the_exit_code);
	tcase_add_test(tc, row_6_input_to_the_program);
	tcase_add_test(tc, row_7_waiting_for_the_end);
	tcase_add_test(tc, row_8_a_command);
	return tc;
}

static TCase *
outcome_case(void)
{
	TCase *tc = tcase_create("outcomes");

	tcase_add_checked_fixture(tc, core_setup, core_teardown);
	tcase_add_test(tc, outcome_b);
#ifndef FAKE_RESUMES
	tcase_add_test(tc, only_visible_changes_count_as_output);
	tcase_add_test(tc, a_flood_is_looked_at_now_and_then);
#else
	tcase_add_test(tc, successors_take_over);
#endif
	tcase_add_test(tc, outcome_c);
	tcase_add_test(tc, time_outs_that_never_come);
	tcase_add_test(tc, both_clocks_due_no_output_wins);
	tcase_add_test(tc, both_clocks_run);
	tcase_add_test(tc, blocking_turns_the_no_output_clock_off);
	tcase_add_test(tc, completion_comes_before_a_clock);
	return tc;
}

int
main(void)
{
	Suite *s = suite_create("core");
	SRunner *sr;
	int failed;

	suite_add_tcase(s, table_case());
	suite_add_tcase(s, outcome_case());
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
