/* session/core: a shell whose readline takes its commands from us. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "core_check.h"

/* The first prompt is always readline's at the terminal, the second waits for us. */
static void
fresh(void)
{
	fake_init(&f);
	f.takes_lines = true;
	fake_start(&f);
	ASK(&f, "true");
	ck_assert_uint_eq(f.given.len, 0);
	fake_begin(&f);
	f.in_readline = false;
	fake_report(&f, 0);
	check_completed(1, "", 0);
	fake_forget(&f);
}

static void
check_given(const char *text)
{
	ck_assert_str_eq(hr_buf_str(&f.given), text);
	ck_assert_uint_eq(f.typed.len, 0);
}

START_TEST(a_command_is_given)
{
	ASK(&f, "echo hi");
	check_given("echo hi|");
	fake_take_given(&f);
	fake_out(&f, "hi\n");
	fake_report(&f, 3);
	check_completed(2, "hi", 3);
	ASK(&f, "echo \"a\tb\n\x01\x7f\"");
	check_given("echo \"a\tb\n\x01\x7f\"|");
	fake_take_given(&f);
	fake_report(&f, 0);
	check_completed(3, "", 0);
}
END_TEST

START_TEST(output_before_and_after)
{
	fake_out(&f, "from the background");
	ASK(&f, "echo hi");
	fake_out(&f, "\nmore\n"); /* not yet the command's, but seen */
	fake_take_given(&f);
	fake_out(&f, "hi\n");
	fake_report(&f, 0);
	check_completed(2, "from the background\n\nmore\nhi", 0);
}
END_TEST

START_TEST(keys_go_to_the_terminal)
{
	ASK(&f, "C-c");
	check_given("|");
	hr_buf_reset(&f.given);
	fake_readline(&f);
	ck_assert_str_eq(hr_buf_str(&f.typed), "\003");
	fake_interrupted(&f);
	fake_report(&f, 130);
	check_result(2, "^C", "", "\n[The command completed with exit code 130. CTRL+C was sent.]");
	fake_forget(&f);
	ASK(&f, "echo hi"); /* and the next prompt waits for us again */
	check_given("echo hi|");
}
END_TEST

START_TEST(interrupted_before_it_is_taken)
{
	bool busy = true;

	ASK(&f, "sleep 1000", .timeout = 1);
	ck_assert(hr_core_withdraw(f.core, 143, &busy) && !busy);
	ck_assert_uint_eq(f.given.len, 0);
	check_completed(2, "", 143);
	ck_assert(!hr_core_withdraw(f.core, 143, &busy));
	fake_forget(&f);
	ASK(&f, "sleep 1000", .timeout = 1);
	fake_wait(&f, 1100);
	ASK(&f, "C-c", .is_input = true);
	check_result(4, "", "", "\n[The command completed with exit code 130. CTRL+C was sent.]");
	ck_assert_uint_eq(f.given.len, 0);
	ck_assert_uint_eq(f.typed.len, 0);
	ASK(&f, "echo hi"); /* the shell still waits for it */
	check_given("echo hi|");
	fake_take_given(&f);
	ck_assert(!hr_core_withdraw(f.core, 130, &busy));
	fake_report(&f, 0);
}
END_TEST

/* What a trap runs has the terminal, or the shell runs it itself: it gets the key, too. */
START_TEST(interrupted_in_a_trap)
{
	bool busy = false;

	f.away = _i == 0;
	f.works = _i == 0 ? 0 : 10;
	ASK(&f, "sleep 1000", .timeout = 1);
	ck_assert(hr_core_withdraw(f.core, 130, &busy) && busy);
	check_completed(2, "", 130);
	fake_forget(&f);
	ASK(&f, "sleep 1000", .timeout = 1);
	fake_wait(&f, 1100);
	ASK(&f, "C-c", .is_input = true);
	ck_assert_uint_eq(f.given.len, 0);
	ck_assert_str_eq(hr_buf_str(&f.typed), "\003");
	check_result(4, "", "", "\n[The command completed with exit code 130. CTRL+C was sent.]");
}
END_TEST

START_TEST(a_long_text_goes_to_the_terminal)
{
	HR_FREE char *text = malloc(HR_HOOK_LINE_MAX + 2);

	ck_assert_ptr_nonnull(text);
	memset(text, 'x', HR_HOOK_LINE_MAX + 1);
	text[HR_HOOK_LINE_MAX] = '\0';
	ASK(&f, text);
	ck_assert_uint_eq(f.given.len, HR_HOOK_LINE_MAX + 1);
	fake_take_given(&f);
	fake_report(&f, 0);
	check_completed(2, "", 0);
	text[HR_HOOK_LINE_MAX] = 'x';
	text[HR_HOOK_LINE_MAX + 1] = '\0';
	ASK(&f, text);
	check_given("|");
	hr_buf_reset(&f.given);
	fake_readline(&f);
	ck_assert_uint_gt(f.typed.len, HR_HOOK_LINE_MAX);
}
END_TEST

/* The builtin was disabled, or what it needs was closed: readline has the terminal as ever. */
START_TEST(a_shell_that_does_not_take_after_all)
{
	fake_readline(&f);
	ASK(&f, "echo hi");
	ck_assert_uint_eq(f.given.len, 0);
	ck_assert_str_eq(hr_buf_str(&f.typed), "\033[200~echo hi\033[201~\r");
	fake_begin(&f);
	fake_out(&f, "hi\n");
	fake_report(&f, 0);
	check_completed(2, "hi", 0);
	/* and when the command was given before that is seen */
	fake_forget(&f);
	ASK(&f, "echo ho");
	check_given("echo ho|");
	fake_readline(&f);
	ck_assert_uint_eq(f.given.len, 0);
	ck_assert_str_eq(hr_buf_str(&f.typed), "\033[200~echo ho\033[201~\r");
	fake_begin(&f);
	fake_out(&f, "ho\n");
	fake_report(&f, 0);
	check_completed(3, "ho", 0);
}
END_TEST

START_TEST(a_command_that_is_not_whole)
{
	ASK(&f, "echo \"a");
	hr_buf_reset(&f.given);
	fake_out(&f, HR_HOOK_MORE);
	fake_readline(&f); /* PS2 */
	ck_assert_uint_eq(f.typed.len, 0);
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	check_result(2, "", "", FAKE_NO_OUTPUT);
	ASK(&f, "b\"", .is_input = true);
	ck_assert_str_eq(hr_buf_str(&f.typed), "\033[200~b\"\033[201~\r");
	fake_begin(&f);
	fake_out(&f, "a\nb\n");
	fake_report(&f, 0);
	check_completed(3, "a\nb", 0);
}
END_TEST

START_TEST(a_command_that_is_not_taken)
{
	ASK(&f, "true");
	fake_wait(&f, 4000);
	ck_assert_uint_eq(f.restarts, 1);
	ck_assert_uint_eq(f.given.len, 0); /* no other shell may find it */
	ck_assert_uint_eq(f.results, 2);
}
END_TEST

/* An interrupt brings the shell to another prompt before it reads. */
START_TEST(a_prompt_before_it_was_taken)
{
	ASK(&f, "echo hi");
	fake_report(&f, 130);
	ck_assert_uint_eq(f.results, 1);
	check_given("echo hi|"); /* once */
	fake_take_given(&f);
	fake_out(&f, "hi\n");
	fake_report(&f, 0);
	check_completed(2, "hi", 0);
}
END_TEST

/* A trap has the terminal for as long as it likes. */
START_TEST(a_trap_before_it_was_taken)
{
	f.away = true;
	ASK(&f, "true", .blocking = true);
	fake_wait(&f, 4000);
	fake_wait(&f, 10000);
	ck_assert_uint_eq(f.restarts, 0);
	check_given("true|");
	f.away = false;
	fake_take_given(&f);
	fake_report(&f, 0);
	check_completed(2, "", 0);
	/* but a shell that does nothing is replaced */
	fake_forget(&f);
	f.away = true;
	ASK(&f, "true", .blocking = true);
	fake_wait(&f, 4000);
	f.away = false;
	fake_wait(&f, 2000);
	ck_assert_uint_eq(f.restarts, 1);
}
END_TEST

/* A shell that gets no processor is waited for; one that has had it, and does not read, is not. */
START_TEST(a_shell_that_is_starved)
{
	int i;

	f.works = 60000;
	ASK(&f, "true", .blocking = true);
	fake_wait(&f, 4000);
	for (i = 0; i < 50; i++)
		fake_wait(&f, 2000);
	ck_assert_uint_eq(f.restarts, 0);
	check_given("true|");
	fake_take_given(&f);
	fake_report(&f, 0);
	check_completed(2, "", 0);
	fake_forget(&f);
	ASK(&f, "true", .blocking = true);
	fake_wait(&f, 4000);
	f.works += 9000;
	fake_wait(&f, 2000);
	ck_assert_uint_eq(f.restarts, 0);
	f.works += 1000;
	fake_wait(&f, 2000);
	ck_assert_uint_eq(f.restarts, 1);
}
END_TEST

START_TEST(an_end_before_it_was_taken)
{
	ASK(&f, "echo hi");
	hr_core_exited(f.core, 0, f.now);
	ck_assert_uint_eq(f.given.len, 0);
	ck_assert_uint_eq(f.results, 1);
	fake_start(&f); /* another shell runs it */
	ck_assert_str_eq(hr_buf_str(&f.typed), "\033[200~echo hi\033[201~\r");
	fake_begin(&f);
	fake_out(&f, "hi\n");
	fake_report(&f, 0);
	ck_assert_uint_eq(f.results, 2);
	ck_assert_str_eq(f.last.content, "hi");
}
END_TEST

/* Its timeout begins when the next shell has it, or the terminal in place of a readline that is
 * gone. */
START_TEST(a_command_that_may_wait_for_the_shell)
{
	ASK(&f, "echo hi", .blocking = true, .timeout = 0.5, .ready_s = 10);
	check_given("echo hi|");
	hr_core_exited(f.core, 0, f.now);
	fake_wait(&f, 9000);
	ck_assert_uint_eq(f.results, 1);
	fake_start(&f);
	ck_assert_str_eq(hr_buf_str(&f.typed), "\033[200~echo hi\033[201~\r");
	fake_begin(&f);
	f.in_readline = false;
	fake_report(&f, 3);
	ck_assert_uint_eq(f.results, 2);
	ck_assert_int_eq(f.last.exit_code, 3);
	fake_forget(&f);
	f.takes_lines = false;
	ASK(&f, "echo on", .blocking = true, .timeout = 0.001, .ready_s = 10);
	fake_wait(&f, 500);
	ck_assert_uint_eq(f.results, 2);
	fake_readline(&f);
	ck_assert_str_eq(hr_buf_str(&f.typed), "\033[200~echo on\033[201~\r");
}
END_TEST

START_TEST(an_end_after_it_was_taken)
{
	ASK(&f, "exit 4");
	fake_take_given(&f);
	hr_core_exited(f.core, 4, f.now);
	ck_assert_uint_eq(f.results, 2);
	ck_assert_int_eq(f.last.exit_code, 4);
	fake_start(&f);
	ck_assert_uint_eq(f.typed.len, 0);
}
END_TEST

/* Nothing tells that it was taken. */
START_TEST(a_command_that_takes_its_time)
{
	ASK(&f, "sleep 5");
	hr_buf_reset(&f.given);
	ck_assert(hr_core_typed(f.core) && !hr_core_edits(f.core));
	fake_wait(&f, 4000);
	ck_assert(!hr_core_typed(f.core));
	ck_assert_uint_eq(f.restarts, 0);
	fake_report(&f, 0);
	check_completed(2, "", 0);
}
END_TEST

START_TEST(readline_in_the_command)
{
	ASK(&f, "read -e x");
	fake_take_given(&f);
	fake_readline(&f);
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	check_result(2, "", "", FAKE_NO_OUTPUT);
	ck_assert_uint_eq(f.typed.len, 0); /* it was not taken for a lost hook */
}
END_TEST

/* It marks that it reads a line as bash does, but is not bash that wants more of the command. */
START_TEST(a_program_with_a_line_editor)
{
	ASK(&f, "python3");
	fake_take_given(&f);
	fake_out(&f, "\033[?2004h>>> ");
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	check_result(2, ">>>", "", FAKE_NO_OUTPUT);
	ASK(&f, "1+1", .is_input = true);
	ck_assert_str_eq(hr_buf_str(&f.typed), "1+1\r"); /* not pasted, no echo of bash's */
	/* nor does a mark that comes later make it one */
	fake_out(&f, "2\r\n>>> " HR_HOOK_MORE);
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	fake_forget(&f);
	ASK(&f, "2+2", .is_input = true);
	ck_assert_str_eq(hr_buf_str(&f.typed), "2+2\r");
}
END_TEST

START_TEST(a_lost_hook)
{
	ASK(&f, "unset PROMPT_COMMAND");
	fake_take_given(&f);
	fake_readline(&f);
	fake_wait(&f, 100);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&f.typed), "PROMPT_COMMAND"));
}
END_TEST

/* What is left of an older ack has the shell wait for us, unknown to us. */
START_TEST(a_shell_that_waits_unasked)
{
	ASK(&f, "true");
	fake_take_given(&f);
	f.takes_lines = false;
	fake_report(&f, 0);
	f.takes_lines = true;
	ASK(&f, "echo hi");
	fake_wait(&f, 100);
	ck_assert_ptr_nonnull(strchr(hr_buf_str(&f.given), '|'));
	hr_buf_reset(&f.given);
	fake_readline(&f);
	ck_assert_str_eq(hr_buf_str(&f.typed), "\033[200~echo hi\033[201~\r");
}
END_TEST

static Suite *
suite(void)
{
	Suite *s = suite_create("core, commands that are given");
	TCase *tc = tcase_create("given");

	tcase_add_checked_fixture(tc, fresh, core_teardown);
	tcase_add_test(tc, a_command_is_given);
	tcase_add_test(tc, output_before_and_after);
	tcase_add_test(tc, keys_go_to_the_terminal);
	tcase_add_test(tc, interrupted_before_it_is_taken);
	tcase_add_loop_test(tc, interrupted_in_a_trap, 0, 2);
	tcase_add_test(tc, a_long_text_goes_to_the_terminal);
	tcase_add_test(tc, a_shell_that_does_not_take_after_all);
	tcase_add_test(tc, a_command_that_is_not_whole);
	tcase_add_test(tc, a_command_that_is_not_taken);
	tcase_add_test(tc, a_prompt_before_it_was_taken);
	tcase_add_test(tc, a_trap_before_it_was_taken);
	tcase_add_test(tc, a_shell_that_is_starved);
	tcase_add_test(tc, an_end_before_it_was_taken);
	tcase_add_test(tc, a_command_that_may_wait_for_the_shell);
	tcase_add_test(tc, an_end_after_it_was_taken);
	tcase_add_test(tc, a_command_that_takes_its_time);
	tcase_add_test(tc, a_program_with_a_line_editor);
	tcase_add_test(tc, a_lost_hook);
	tcase_add_test(tc, readline_in_the_command);
	tcase_add_test(tc, a_shell_that_waits_unasked);
	suite_add_tcase(s, tc);
	return s;
}

int
main(void)
{
	SRunner *sr = srunner_create(suite());
	int failed;

	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
