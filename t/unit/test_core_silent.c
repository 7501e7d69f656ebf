/* session/core: shells whose readline is not seen: its output goes elsewhere, it was turned off, or
 * something comes before it. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core_check.h"

static void
check_typed(const char *text)
{
	ck_assert_str_eq(hr_buf_str(&f.typed), text);
	fake_forget(&f);
}

/* A prompt of which nothing is seen; the shell is in readline all the same. */
static void
silent_prompt(int exit_code)
{
	fake_report(&f, exit_code);
	f.in_readline = true;
	fake_wait(&f, 60);
}

/* ---- exec 2>file ---- */

START_TEST(a_silent_readline)
{
	f.blind = true;
	ASK(&f, "exec 2>/dev/null");
	fake_begin(&f);
	silent_prompt(0);
	check_completed(1, "", 0);
	fake_forget(&f);
	ASK(&f, "echo x");
	check_typed("\033[200~echo x\033[201~\r");
	f.in_readline = false;
	fake_out(&f, "x\n"); /* no echo, no mark of its end */
	fake_wait(&f, 8000); /* not taken for a readline that is stuck */
	ck_assert_uint_eq(f.restarts, 0);
	silent_prompt(0);
	check_completed(2, "x", 0);
}
END_TEST

/* It is typed behind a blank, for the history. */
START_TEST(the_echo_of_a_hidden_command)
{
	f.blind = true;
	ASK(&f, "exec 2>/dev/null");
	fake_begin(&f);
	silent_prompt(0);
	f.blind = false;
	ASK(&f, "echo x", .hidden = true);
	fake_out(&f, " echo x\nx\n");
	silent_prompt(0);
	check_completed(2, "x", 0);
}
END_TEST

START_TEST(output_that_begins_like_the_command)
{
	f.blind = true;
	ASK(&f, "exec 2>/dev/null");
	fake_begin(&f);
	silent_prompt(0);
	ASK(&f, "cat");
	fake_out(&f, "cat sat\n");
	silent_prompt(0);
	check_completed(2, "cat sat", 0);
}
END_TEST

START_TEST(a_readline_that_marks_nothing)
{
	ASK(&f, "TERM=dumb bash");
	fake_begin(&f);
	silent_prompt(0);
	check_completed(1, "", 0);
	ASK(&f, "echo x");
	fake_out(&f, "echo x\nx\n"); /* the echo comes, its end cannot be known */
	silent_prompt(0);
	check_completed(2, "x", 0);
}
END_TEST

START_TEST(looked_for_more_often_next_time)
{
	f.blind = true;
	ASK(&f, "exec 2>/dev/null");
	fake_begin(&f);
	silent_prompt(0);
	fake_report(&f, 0);
	fake_forget(&f);
	f.in_readline = true;
	ASK(&f, "true");
	fake_wait(&f, 2);
	check_typed("\033[200~true\033[201~\r");
}
END_TEST

/* ---- set +o emacs ---- */

START_TEST(readline_is_turned_on_again)
{
	ASK(&f, "set +o emacs; (exit 3)");
	fake_begin(&f);
	f.no_editing = true;
	fake_report(&f, 3);
	check_completed(1, "", 3);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&f.typed), "set -o emacs; (\\exit 3)\n"));
	ASK(&f, "echo x");                         /* comes in between */
	fake_out(&f, " set -o emacs; (exit 3)\n"); /* the terminal's echo */
	f.no_editing = false;
	ck_assert_uint_eq(f.results, 1);
	fake_forget(&f);
	fake_prompt(&f, 3);
	check_typed("\033[200~echo x\033[201~\r");
	fake_begin(&f);
	fake_out(&f, "x\n");
	fake_prompt(&f, 0);
	check_completed(2, "x", 0);
}
END_TEST

START_TEST(readline_stays_off)
{
	ASK(&f, "set() { :; }; set +o emacs");
	fake_begin(&f);
	f.no_editing = true;
	fake_report(&f, 0);
	check_completed(1, "", 0);
	fake_wait(&f, 2000);
	ck_assert_uint_eq(f.restarts, 1);
}
END_TEST

/* ---- another root ---- */

START_TEST(a_prompt_comes_before_the_command)
{
	f.strays = true;
	ASK(&f, "echo x");
	check_typed("\r");
	fake_out(&f, "\n\033[?2004l\r");
	f.in_readline = f.strays = false;
	fake_forget(&f);
	fake_report(&f, 0);
	ck_assert_uint_eq(f.typed.len, 0);
	ck_assert(!f.careful);
	fake_readline(&f);
	check_typed("\033[200~echo x\033[201~\r");
	fake_begin(&f);
	fake_out(&f, "x\n");
	fake_prompt(&f, 0);
	check_completed(1, "x", 0);
}
END_TEST

START_TEST(no_prompt_comes_before_the_command)
{
	f.strays = true;
	ASK(&f, "echo x");
	fake_wait(&f, 2000);
	ck_assert_uint_eq(f.restarts, 1);
}
END_TEST

/* ---- something else in PROMPT_COMMAND ---- */

START_TEST(nobody_waits_for_a_slow_prompt)
{
	ASK(&f, "PROMPT_COMMAND+=('sleep 1000')");
	fake_begin(&f);
	fake_report(&f, 0);
	fake_forget(&f);
	fake_wait(&f, 100000);
	check_nothing_typed();
	ck_assert_uint_eq(f.restarts, 0);
	ck_assert_int_eq(hr_core_deadline(f.core), INT64_MAX);
	ASK(&f, "echo x");
	fake_wait(&f, 10000);
	ck_assert_int_eq(hr_buf_str(&f.typed)[0], 3);
	ck_assert_uint_eq(f.restarts, 1);
}
END_TEST

START_TEST(a_hard_limit_before_the_prompt)
{
	ASK(&f, "PROMPT_COMMAND+=('sleep 1000')");
	fake_begin(&f);
	fake_report(&f, 0);
	ASK(&f, "rm x", .timeout = 1);
	fake_wait(&f, 1000);
	ck_assert_uint_eq(f.results, 2);
	ck_assert(f.last.is_error);
	ck_assert_ptr_nonnull(strstr(f.last.content, "NOT executed"));
	fake_forget(&f);
	fake_readline(&f);
	check_nothing_typed(); /* nor later */
}
END_TEST

/* ---- nothing is executed any more ---- */

START_TEST(a_hook_that_is_not_taken)
{
	ASK(&f, "shopt -s extdebug; trap false DEBUG");
	fake_begin(&f);
	fake_readline(&f);
	fake_wait(&f, 60);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&f.typed), f.hook.nonce));
	fake_take(&f);
	fake_readline(&f);
	fake_wait(&f, 60);
	ck_assert_uint_eq(f.restarts, 1);
	ck_assert_uint_eq(f.results, 1);
	ck_assert_int_eq(f.last.exit_code, 137);
}
END_TEST

/* ---- neither a report nor a mark ---- */

static void
setup_seen(void)
{
	fake_init_seen(&f);
	fake_start(&f);
	fake_forget(&f);
}

START_TEST(a_prompt_that_only_the_kernel_shows)
{
	ASK(&f, "exec env -i bash");
	fake_begin(&f);
	f.seen = HR_SEEN_READLINE;
	fake_wait(&f, 100);
	ck_assert_uint_eq(f.looks, 1);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&f.typed), f.hook.nonce));
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&f.typed), "\r"));
	ck_assert_uint_eq(f.results, 0);
	f.seen = HR_SEEN_NOTHING;
	silent_prompt(3);
	check_completed(1, "", 3);
}
END_TEST

START_TEST(a_prompt_without_readline)
{
	ASK(&f, "set +o emacs; unset PROMPT_COMMAND");
	fake_begin(&f);
	f.seen = HR_SEEN_LINE;
	fake_wait(&f, 100);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&f.typed), f.hook.nonce));
	ck_assert_ptr_null(strstr(hr_buf_str(&f.typed), "\033"));
	ck_assert_int_eq(f.typed.p[f.typed.len - 1], '\n');
}
END_TEST

START_TEST(a_command_that_wants_more)
{
	ASK(&f, "echo \"not ended");
	fake_begin(&f);
	fake_forget(&f);
	f.seen = HR_SEEN_READLINE;
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	ck_assert_uint_ge(f.looks, 5);
	check_nothing_typed();
	ck_assert_uint_eq(f.results, 1);
	/* given up by a key */
	ASK(&f, "C-c", .is_input = true);
	fake_forget(&f);
	fake_wait(&f, 100);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&f.typed), f.hook.nonce));
}
END_TEST

START_TEST(a_command_that_reads_a_line)
{
	static const char *const texts[] = {"read -e x", "read -re x", "read -p 'x> ' -er x"};

	ASK(&f, texts[_i]);
	fake_begin(&f);
	fake_forget(&f);
	f.seen = HR_SEEN_READLINE;
	f.in_readline = true;
	fake_out(&f, "\033[?2004h");
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	check_nothing_typed();
	ck_assert_uint_eq(f.results, 1);
}
END_TEST

/* It costs nothing to let a command run for long. */
START_TEST(looked_at_less_and_less)
{
	ASK(&f, "sleep 1000", .blocking = true);
	fake_begin(&f);
	fake_wait(&f, 60000);
	ck_assert_uint_eq(f.looks, 8);
	ck_assert_int_eq(hr_core_deadline(f.core), INT64_MAX);
	fake_prompt(&f, 0);
	ck_assert_uint_eq(f.results, 1);
	/* nobody is looked at at a prompt */
	fake_wait(&f, 60000);
	ck_assert_uint_eq(f.looks, 8);
	ck_assert_int_eq(hr_core_deadline(f.core), INT64_MAX);
}
END_TEST

START_TEST(looked_at_again_when_asked)
{
	ASK(&f, "sleep 1000");
	fake_begin(&f);
	fake_wait(&f, 60000);
	ck_assert_uint_eq(f.looks, 8);
	ASK(&f, "");
	fake_wait(&f, 100);
	ck_assert_uint_eq(f.looks, 9);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("core_silent");
	TCase *tc = tcase_create("silent");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, core_setup, core_teardown);
	tcase_add_test(tc, a_silent_readline);
	tcase_add_test(tc, the_echo_of_a_hidden_command);
	tcase_add_test(tc, output_that_begins_like_the_command);
	tcase_add_test(tc, a_readline_that_marks_nothing);
	tcase_add_test(tc, looked_for_more_often_next_time);
	tcase_add_test(tc, readline_is_turned_on_again);
	tcase_add_test(tc, readline_stays_off);
	tcase_add_test(tc, a_prompt_comes_before_the_command);
	tcase_add_test(tc, no_prompt_comes_before_the_command);
	tcase_add_test(tc, nobody_waits_for_a_slow_prompt);
	tcase_add_test(tc, a_hard_limit_before_the_prompt);
	tcase_add_test(tc, a_hook_that_is_not_taken);
	suite_add_tcase(s, tc);
	tc = tcase_create("seen");
	tcase_add_checked_fixture(tc, setup_seen, core_teardown);
	tcase_add_test(tc, a_prompt_that_only_the_kernel_shows);
	tcase_add_test(tc, a_prompt_without_readline);
	tcase_add_test(tc, a_command_that_wants_more);
	tcase_add_loop_test(tc, a_command_that_reads_a_line, 0, 3);
	tcase_add_test(tc, looked_at_less_and_less);
	tcase_add_test(tc, looked_at_again_when_asked);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
