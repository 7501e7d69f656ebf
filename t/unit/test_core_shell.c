/* session/core: the life of the shell under it. Typing, the start, lost hooks, ends and successors,
 * shells within shells. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core_check.h"

#define RESTARTED(dir)                                                                             \
	"\n[The shell exited and has been restarted in " dir ". Exported variables were kept; "    \
	"shell variables, functions and jobs were lost.]"

static void
fresh(void)
{
	fake_init(&f);
}

/* The prompt of a shell that is not the session's own: nobody acks it. */
static void
nested_prompt(int exit_code)
{
	const struct hr_core_prompt p = {.exit_code = exit_code,
	    .job = 5,
	    .username = "you",
	    .working_dir = "/nested",
	    .py_path = "",
	    .flags = "himBs",
	    .has_readline = true,
	    .is_session = false};

	hr_core_prompt(f.core, &p, f.now);
}

static void
check_typed(const char *text)
{
	ck_assert_str_eq(hr_buf_str(&f.typed), text);
	fake_forget(&f);
}

/* ---- the start ---- */

START_TEST(the_first_prompt)
{
	fake_out(&f, "Welcome!\n");
	ck_assert_uint_eq(f.readies, 0);
	fake_report(&f, 0);
	ck_assert_uint_eq(f.readies, 1);
	ck_assert_uint_eq(f.acks, 1);
	ck_assert(f.careful);
	ASK(&f, "echo x");
	ck_assert_uint_eq(f.typed.len, 0); /* not before readline has the terminal */
	fake_readline(&f);
	check_typed("\033[200~echo x\033[201~\r");
	fake_begin(&f);
	fake_out(&f, "x\n");
	fake_prompt(&f, 0);
	check_completed(1, "x", 0); /* and nothing of the start-up */
	ck_assert_uint_eq(f.readies, 1);
	ck_assert(!f.careful);
}
END_TEST

START_TEST(a_command_for_a_shell_that_is_not_ready)
{
	ASK(&f, "echo x", .timeout = 3);
	fake_wait(&f, 3000);
	ck_assert_uint_eq(f.results, 1);
	ck_assert(f.last.is_error);
	ck_assert_ptr_nonnull(strstr(f.last.content, "NOT executed"));
	fake_prompt(&f, 0);
	ck_assert_uint_eq(f.typed.len, 0);
	ck_assert(!hr_core_running(f.core));
	ASK(&f, "echo y");
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&f.typed), "echo y"));
}
END_TEST

/* The timeout counts from when the shell has the command, whose limit for that is another one. */
START_TEST(a_command_that_may_wait_for_the_shell)
{
	ASK(&f, "echo x", .blocking = true, .timeout = 0.5, .ready_s = 10);
	fake_wait(&f, 9000);
	ck_assert_uint_eq(f.results, 0);
	fake_prompt(&f, 0);
	check_typed("\033[200~echo x\033[201~\r");
	fake_begin(&f);
	fake_wait(&f, 499);
	ck_assert_uint_eq(f.results, 0);
	fake_wait(&f, 1);
	ck_assert_uint_eq(f.results, 1);
	ck_assert_ptr_nonnull(strstr(f.last.suffix, "timed out after 0.5 seconds"));
	fake_prompt(&f, 0);
	ASK(&f, "");
	ck_assert_uint_eq(f.results, 2);
	f.in_readline = false;
	fake_report(&f, 0);
	ASK(&f, "echo y", .blocking = true, .timeout = 0.5, .ready_s = 1);
	fake_wait(&f, 999);
	ck_assert_uint_eq(f.results, 2);
	fake_wait(&f, 1);
	ck_assert_uint_eq(f.results, 3);
	ck_assert_ptr_nonnull(strstr(f.last.content, "NOT executed"));
}
END_TEST

START_TEST(no_shell_gets_ready_for_ever)
{
	ASK(&f, "echo x");
	fake_report(&f, 0);
	fake_wait(&f, 7000); /* no sign of readline: interrupted, then replaced */
	ck_assert_uint_eq(f.restarts, 1);
	check_typed("\003");
	fake_prompt(&f, 0);
	check_typed("\033[200~echo x\033[201~\r");
	ck_assert_uint_eq(f.results, 0);
	fake_begin(&f);
	fake_prompt(&f, 0);
	ck_assert_uint_eq(f.results, 1);
	ck_assert_int_eq(f.last.exit_code, 0);
	ck_assert_ptr_nonnull(strstr(f.last.suffix, RESTARTED("/w")));
}
END_TEST

/* The C-c would go to each command's trace, so the shell is replaced without one. */
START_TEST(a_trace_that_never_ends)
{
	f.tracing = true;
	ASK(&f, "echo x");
	fake_report(&f, 0);
	fake_wait(&f, 2929); /* five looks, and two seconds more */
	ck_assert_uint_eq(f.restarts, 0);
	fake_wait(&f, 1);
	ck_assert_uint_eq(f.restarts, 1);
	ck_assert_uint_eq(f.typed.len, 0);
}
END_TEST

START_TEST(a_first_start_that_never_ends)
{
	fake_wait(&f, 19999);
	ck_assert_uint_eq(f.restarts, 0);
	fake_wait(&f, 1);
	ck_assert_uint_eq(f.restarts, 1); /* without the user's start-up files, says the keeper */
}
END_TEST

START_TEST(a_start_that_never_ends)
{
	fake_prompt(&f, 0);
	ASK(&f, "exit");
	fake_begin(&f);
	hr_core_exited(f.core, 0, f.now);
	fake_wait(&f, 19999);
	ck_assert_uint_eq(f.restarts, 1);
	fake_wait(&f, 1);
	ck_assert_uint_eq(f.restarts, 2);
}
END_TEST

START_TEST(the_first_start_needs_no_notice)
{
	hr_core_exited(f.core, 1, f.now); /* a start-up file that says exit */
	ck_assert_uint_eq(f.restarts, 1);
	fake_prompt(&f, 0);
	ASK(&f, "true");
	fake_begin(&f);
	fake_prompt(&f, 0);
	check_completed(1, "", 0);
}
END_TEST

/* ---- typing ---- */

START_TEST(every_byte_arrives)
{
	ASK(&f, "a\x1b[201~b");
	check_typed("\033[200~a\033[201~\026\033\033[200~[201~b\033[201~\r");
	fake_begin(&f);
	fake_prompt(&f, 0);
	ASK(&f, "\x1b[20\x1b[201~1~");
	check_typed("\033[200~\033[20\033[201~\026\033\033[200~[201~1~\033[201~\r");
	fake_begin(&f);
	fake_prompt(&f, 0);
	/* readline makes LF of a pasted CR */
	ASK(&f, "x\r'\r\nz'");
	check_typed("\033[200~x\033[201~\026\r\033[200~'\033[201~\026\r\033[200~\nz'\033[201~\r");
	fake_begin(&f);
	fake_prompt(&f, 0);
	ASK(&f, "x\r\ry");
	check_typed("\033[200~x\033[201~\026\r\026\r\033[200~y\033[201~\r");
	fake_begin(&f);
	fake_prompt(&f, 0);
	/* many of them: another way, since each costs a drawing of the line */
	ASK(&f, "a'\\\x1b[201~\r\r\r\r\r\r\r\r\r'");
	check_typed(
	    "\033[200~\\builtin eval $'a\\'\\\\\\e[201~\\r\\r\\r\\r\\r\\r\\r\\r\\r\\''\033[201~\r");
}
END_TEST

START_TEST(control_characters_are_typed_literally)
{
	static const char *const yes[] = {"a\x03z", "a\x16z", "\x7fz", "a\x1bz"};
	size_t i;

	for (i = 0; i < 4; i++) {
		ASK(&f, yes[i]);
		ck_assert_msg(f.literal, "%zu", i);
		fake_begin(&f);
		fake_prompt(&f, 0);
	}
	ASK(&f, "a\t'b\nc'");
	ck_assert(!f.literal);
}
END_TEST

START_TEST(names_of_keys_are_text_without_is_input)
{
	ASK(&f, "Up");
	check_typed("\033[200~Up\033[201~\r");
	fake_begin(&f);
	fake_prompt(&f, 127);
	ASK(&f, "c-c");
	check_typed("\033[200~c-c\033[201~\r");
}
END_TEST

static void
check_key(const char *name, const char *bytes)
{
	ASK(&f, name, .is_input = true);
	check_typed(bytes);
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	ck_assert_uint_eq(f.results, f.requests);
}

START_TEST(keys_for_a_program)
{
	leave_running("x");
	check_key("Enter", "\r");
	check_key("Up", "\033[A");
	fake_out(&f, "\033[?1h");
	check_key("Up", "\033OA");
	check_key("F5", "\033[15~");
	check_key("C-c", "\003");
	check_key("^C", "\003");
	check_key("C-[", "\033");
	check_key("up", "up\r");
	check_key("-5", "-5\r");
	ASK(&f, "C-1", .is_input = true);
	ck_assert(f.last.is_error);
	ck_assert_ptr_nonnull(strstr(f.last.content, "C-1"));
	ck_assert_uint_eq(f.typed.len, 0);
}
END_TEST

START_TEST(interrupt_at_an_idle_prompt)
{
	ASK(&f, "C-c");
	check_typed("\003");
	/* between readline's taking the terminal and its signals, one may be lost */
	fake_wait(&f, 50);
	check_typed("\003");
	fake_interrupted(&f);
	fake_prompt(&f, 130);
	check_result(1, "^C", "", "\n[The command completed with exit code 130. CTRL+C was sent.]");
	fake_wait(&f, 10000);
	ck_assert_uint_eq(f.typed.len, 0);
}
END_TEST

START_TEST(end_of_file_at_an_idle_prompt)
{
	ASK(&f, "C-d");
	check_typed("\004");
	fake_out(&f, "exit\n");
	hr_core_exited(f.core, 0, f.now);
	check_result(1, "exit", "",
	    "\n[The command completed with exit code 0. CTRL+D was sent.]" RESTARTED("/w"));
}
END_TEST

START_TEST(other_keys_do_nothing_to_an_empty_line)
{
	static const char *const keys[] = {
	    "C-p", "C-r", "C-s", "C-v", "C-q", "C-x", "C-[", "C-i", "C-y", "C-l", "C-z", "C-@"};
	char suffix[100];
	size_t i;

	ASK(&f, "false");
	fake_begin(&f);
	fake_prompt(&f, 1);
	for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		ASK(&f, keys[i]);
		(void)snprintf(suffix, sizeof(suffix),
		    "\n[The command completed with exit code 1. CTRL+%c was sent.]",
		    keys[i][2] >= 'a' ? keys[i][2] - 32 : keys[i][2]);
		check_result((unsigned)i + 2, "", "", suffix);
		/* it would be part of the next command: a search, an old line, a prefix */
		ck_assert_uint_eq(f.typed.len, 0);
	}
	ASK(&f, "C-j");
	check_typed("\n");
}
END_TEST

START_TEST(readline_that_does_not_take_a_line)
{
	ASK(&f, "echo x", .blocking = true);
	fake_wait(&f, 3999);
	ck_assert_uint_eq(f.restarts, 0);
	fake_wait(&f, 100);
	ck_assert_uint_eq(f.restarts, 1);
	ck_assert_uint_eq(f.results, 1);
	ck_assert_int_eq(f.last.exit_code, 137);
	ck_assert_ptr_nonnull(strstr(f.last.suffix, RESTARTED("/w")));
}
END_TEST

/* ---- a command that is not whole ---- */

static void
leave_incomplete(const char *command)
{
	ASK(&f, command);
	fake_take(&f);
	fake_out(&f, "\033[?2004h"); /* PS2: no PS0, no report */
	f.in_readline = true;
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	ck_assert_uint_eq(f.results, f.requests);
	ck_assert_str_eq(f.last.content, "");
	ck_assert_str_eq(f.last.suffix, FAKE_NO_OUTPUT);
	fake_forget(&f);
}

/* Another core sees the echo of the first line: of those it knows the last. */
#ifndef FAKE_RESUMES
START_TEST(the_rest_of_a_command_comes_as_input)
{
	leave_incomplete("echo \"foo");
	ASK(&f, "bar\"", .is_input = true);
	check_typed("\033[200~bar\"\033[201~\r");
	fake_begin(&f);
	fake_out(&f, "foo\nbar\n");
	fake_prompt(&f, 0);
	check_completed(2, "foo\nbar", 0);
}
END_TEST
#endif

START_TEST(a_here_document_line_by_line)
{
	leave_incomplete("cat <<EOF");
	ASK(&f, "line 1", .is_input = true);
	check_typed("\033[200~line 1\033[201~\r");
	fake_take(&f);
	fake_readline(&f);
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	check_result(2, "", FAKE_BELOW, FAKE_NO_OUTPUT);
	ASK(&f, "EOF", .is_input = true);
	fake_begin(&f);
	fake_out(&f, "line 1\n");
	fake_prompt(&f, 0);
	check_completed(3, "line 1", 0);
}
END_TEST

START_TEST(an_incomplete_command_given_up)
{
	leave_incomplete("echo \"foo");
	ASK(&f, "C-c", .is_input = true);
	check_typed("\003");
	fake_wait(&f, 120); /* as at an idle prompt, repeated */
	check_typed("\003\003");
	fake_interrupted(&f);
	fake_prompt(&f, 130);
	check_result(2, "^C", "", "\n[The command completed with exit code 130. CTRL+C was sent.]");
	ASK(&f, "C-d", .is_input = true);
	ck_assert_uint_eq(f.typed.len, 0);
}
END_TEST

/* ---- a report that readline overtook ---- */

/* A shell that a signal interrupted while it waited for the ack sent another report, and took the
 * ack of the first for that of the second: the second is read when readline has the terminal. An
 * ack now would be for nobody, and with it the typed command would be dropped. */
START_TEST(a_late_report_before_a_command)
{
	ASK(&f, "export A=1");
	fake_begin(&f);
	fake_prompt(&f, 0);
	check_completed(1, "", 0);
	ck_assert_uint_eq(f.acks, 2);
	fake_report(&f, 130);
	ck_assert_uint_eq(f.acks, 2);
	ASK(&f, "echo x");
	check_typed("\033[200~echo x\033[201~\r");
	fake_wait(&f, 1000);
	ck_assert_uint_eq(f.typed.len, 0);
	fake_begin(&f);
	fake_out(&f, "x\n");
	fake_prompt(&f, 0);
	check_completed(2, "x", 0);
	ck_assert_uint_eq(f.acks, 3);
}
END_TEST

START_TEST(a_late_report_after_a_command_was_typed)
{
	ASK(&f, "export A=1");
	fake_begin(&f);
	fake_report(&f, 0);
	ASK(&f, "echo x");
	fake_readline(&f);
	check_typed("\033[200~echo x\033[201~\r");
	fake_report(&f, 130);
	ck_assert_uint_eq(f.results, 1);
	ck_assert_uint_eq(f.acks, 2);
	fake_out(&f, "echo x");
	fake_report(&f, 130);
	ck_assert_uint_eq(f.results, 1);
	fake_begin(&f);
	fake_out(&f, "x\n");
	fake_prompt(&f, 3);
	check_completed(2, "x", 3);
	ck_assert_uint_eq(f.acks, 3);
}
END_TEST

/* The command's own report, as late: readline waits for the next one already. */
START_TEST(a_late_report_of_a_command)
{
	ASK(&f, "echo x");
	fake_begin(&f);
	fake_out(&f, "x\n");
	fake_readline(&f);
	fake_report(&f, 0);
	check_completed(1, "x", 0);
	ck_assert_uint_eq(f.acks, 1);
	ASK(&f, "echo y");
	check_typed("\033[200~echo y\033[201~\r");
	fake_begin(&f);
	fake_out(&f, "y\n");
	fake_prompt(&f, 0);
	check_completed(2, "y", 0);
	ck_assert_uint_eq(f.acks, 2);
}
END_TEST

/* The terminal drops unread output at a C-c: the end of readline may not be seen. What is printed
 * before the next prompt is no sign of readline. */
START_TEST(a_report_that_only_looks_late)
{
	f.in_readline = false;
	fake_report(&f, 130);
	ck_assert_uint_eq(f.acks, 2);
	ASK(&f, "echo x");
#ifndef FAKE_RESUMES /* another core sees the start of readline, and not that it left */
	fake_out(&f, "from the background\n");
#endif
	ck_assert_uint_eq(f.typed.len, 0);
	fake_readline(&f);
	check_typed("\033[200~echo x\033[201~\r");
}
END_TEST

/* ---- a lost hook ---- */

/* The prompt is there, no report. */
static void
lose_hook(const char *command)
{
	ASK(&f, command);
	fake_begin(&f);
	fake_readline(&f);
}

START_TEST(a_lost_hook_is_put_back)
{
	lose_hook("unset PROMPT_COMMAND; (exit 4)");
	fake_wait(&f, 60);
	ck_assert_int_eq(strncmp(hr_buf_str(&f.typed), "\033[200~", 6), 0);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&f.typed), f.hook.nonce));
	fake_begin(&f);
	fake_prompt(&f, 4);
	check_completed(1, "", 4);
	ck_assert(f.careful);
	ASK(&f, "true");
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&f.typed), "~true\033"));
}
END_TEST

START_TEST(a_lost_hook_under_a_flood)
{
	unsigned i;

	lose_hook("yes & unset PROMPT_COMMAND");
	for (i = 0; i < 100 && f.typed.len == 0; i++) {
		fake_wait(&f, 10);
		fake_out(&f, "y\n");
	}
	ck_assert_uint_gt(f.typed.len, 0);
}
END_TEST

START_TEST(what_only_looks_like_a_lost_hook)
{
	/* a program that has bracketed paste on, with the terminal its own */
	ASK(&f, "python3");
	fake_begin(&f);
	fake_out(&f, ">>> \033[?2004h");
	f.in_readline = false;
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	ck_assert_uint_eq(f.typed.len, 0);
	ASK(&f, "1+1", .is_input = true);
	check_typed("1+1\r");
	fake_prompt(&f, 0);
	/* bash's own */
	lose_hook("read -e x");
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	ck_assert_uint_eq(f.typed.len, 0);
}
END_TEST

START_TEST(input_while_the_hook_is_put_back)
{
	lose_hook("unset PROMPT_COMMAND");
	f.now += FAKE_NO_CHANGE_MS + 1; /* a busy machine: both timers at once */
	hr_core_timer(f.core, f.now);
	ck_assert_uint_eq(f.results, 1);
	fake_forget(&f);
	ASK(&f, "rm -rf x", .is_input = true);
	/* the command has ended: its program is not there to read */
	ck_assert_uint_eq(f.typed.len, 0);
	fake_begin(&f);
	fake_prompt(&f, 0);
	check_completed(2, "", 0);
}
END_TEST

/* A shell that gets no processor is waited for; one that has had it, and shows no prompt, is not.
 */
START_TEST(a_shell_that_is_starved)
{
	int i;

	if (_i == 0) {
		lose_hook("unset PROMPT_COMMAND");
		fake_wait(&f, 60);
	} else {
		f.no_editing = true;
		ASK(&f, "set +o emacs");
		fake_begin(&f);
		fake_report(&f, 0);
	}
	ck_assert_uint_gt(f.typed.len, 0);
	f.works = 60000;
	for (i = 0; i < 50; i++)
		fake_wait(&f, 2000);
	ck_assert_uint_eq(f.restarts, 0);
	f.works += 9000;
	fake_wait(&f, 2000);
	ck_assert_uint_eq(f.restarts, 0);
	f.works += 1000;
	fake_wait(&f, 2000);
	ck_assert_uint_eq(f.restarts, 1);
}
END_TEST

START_TEST(a_hook_that_cannot_be_put_back)
{
	lose_hook("readonly PROMPT_COMMAND=");
	fake_wait(&f, 60);
	fake_begin(&f);
	fake_readline(&f);
	fake_wait(&f, 2000);
	ck_assert_uint_eq(f.restarts, 1);
	ck_assert_uint_eq(f.results, 1);
	ck_assert_int_eq(f.last.exit_code, 137);
	ck_assert_ptr_nonnull(strstr(f.last.suffix, "restarted"));
	fake_prompt(&f, 0);
	ASK(&f, "echo x");
	fake_begin(&f);
	fake_prompt(&f, 0);
	check_completed(2, "", 0);
}
END_TEST

/* ---- ends ---- */

START_TEST(exit_completes_at_once)
{
	f.restart_dir = "/elsewhere";
	ASK(&f, "exit 3", .timeout = 5);
	fake_begin(&f);
	fake_out(&f, "exit\n");
	hr_core_exited(f.core, 3, f.now);
	check_result(
	    1, "exit", "", "\n[The command completed with exit code 3.]" RESTARTED("/elsewhere"));
	ck_assert(f.last.has_metadata);
	ck_assert_str_eq(f.last.working_dir, "/elsewhere");
	ck_assert_str_eq(hr_core_working_dir(f.core), "/elsewhere");
	fake_out(&f, "start-up noise\n");
	fake_prompt(&f, 0);
	ASK(&f, "echo x");
	fake_begin(&f);
	fake_out(&f, "x\n");
	fake_prompt(&f, 0);
	check_completed(2, "x", 0); /* told once */
}
END_TEST

START_TEST(exit_while_the_client_is_away)
{
	leave_running("a\n");
	fake_out(&f, "b\n\033[?2004h\033[?1h");
	hr_core_exited(f.core, 9, f.now);
	fake_out(&f, "start-up noise\n");
	fake_report(&f, 0); /* the new shell's prompt is not the old command's end */
	ASK(&f, "");
	check_result(2, "b", "", "\n[The command completed with exit code 9.]" RESTARTED("/w"));
	ASK(&f, "echo x");
	ck_assert_uint_eq(f.typed.len, 0); /* the old shell's readline is not the new one's */
	fake_readline(&f);
	ck_assert_uint_gt(f.typed.len, 0);
}
END_TEST

/* Nothing of the old shell is shown again, nor what the new one prints while it starts. */
START_TEST(exit_after_all_was_shown)
{
	struct hr_view_points points;

	leave_running("a\n");
	fake_out(&f, "b\nc");
	hr_view_points(hr_core_view(f.core), &points);
	hr_core_returned(f.core, points.fed, NULL, NULL);
	hr_core_exited(f.core, 9, f.now);
	fake_out(&f, "noise");
	fake_report(&f, 0);
	fake_readline(&f);
	ASK(&f, "echo x");
	fake_begin(&f);
	fake_out(&f, "x\n");
	fake_prompt(&f, 0);
	check_result(2, "x", "", "\n[The command completed with exit code 0.]" RESTARTED("/w"));
}
END_TEST

START_TEST(killed_at_rest)
{
	hr_core_exited(f.core, 137, f.now);
	ASK(&f, "echo x");
	fake_prompt(&f, 0);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&f.typed), "echo x"));
	fake_begin(&f);
	fake_out(&f, "x\n");
	fake_prompt(&f, 0);
	check_result(1, "x", "", "\n[The command completed with exit code 0.]" RESTARTED("/w"));
}
END_TEST

START_TEST(killed_before_the_command_was_typed)
{
	fake_interrupted(&f);
	fake_report(&f, 130);
	ASK(&f, "echo x");
	ck_assert_uint_eq(f.typed.len, 0);
	hr_core_exited(f.core, 137, f.now);
	ck_assert_uint_eq(f.results, 0);
	fake_prompt(&f, 0);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&f.typed), "echo x"));
}
END_TEST

START_TEST(killed_while_a_line_was_taken)
{
	ASK(&f, "echo x");
	fake_out(&f, "echo");
	hr_core_exited(f.core, 137, f.now);
	ck_assert_uint_eq(f.results, 1);
	ck_assert_str_eq(f.last.content, "");
	fake_prompt(&f, 0);
	ASK(&f, "echo y");
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&f.typed), "echo y"));
}
END_TEST

START_TEST(no_new_shell)
{
	f.restart_dir = NULL;
	leave_running("a\n");
	ASK(&f, "");
	hr_core_exited(f.core, 1, f.now);
	ck_assert_uint_eq(f.results, 2);
	ck_assert(f.last.is_error);
	ck_assert_str_eq(f.last.content, "no shell today");
	/* each request tries again */
	ASK(&f, "echo x");
	ck_assert(f.last.is_error);
	ck_assert_uint_eq(f.restarts, 2);
	f.restart_dir = "/w";
	ASK(&f, "echo x");
	ck_assert_uint_eq(f.restarts, 3);
	ck_assert_uint_eq(f.results, 3);
	fake_prompt(&f, 0);
	fake_begin(&f);
	fake_out(&f, "x\n");
	fake_prompt(&f, 0);
	ck_assert_uint_eq(f.results, 4);
	ck_assert_ptr_nonnull(strstr(f.last.content, "x"));
	ck_assert_int_eq(f.last.exit_code, 0);
}
END_TEST

/* ---- shells within the shell ---- */

START_TEST(a_child_shell)
{
	ASK(&f, "bash");
	fake_begin(&f);
	nested_prompt(0);
	ck_assert_uint_eq(f.acks, 1); /* the first prompt's alone */
	ck_assert_uint_eq(f.results, 1);
	ck_assert_str_eq(f.last.username, "you");
	ck_assert_str_eq(f.last.working_dir, "/nested");
	ck_assert_int_eq(f.last.job, 5);
	fake_readline(&f);
	ASK(&f, "echo x");
	check_typed("\033[200~echo x\033[201~\r");
	fake_take(&f); /* it has no PS0 */
	fake_out(&f, "x\n");
	/* it does not wait: readline may be seen before the report */
	fake_readline(&f);
	nested_prompt(7);
	ck_assert_uint_eq(f.results, 2);
	ck_assert_str_eq(f.last.content, "x");
	ck_assert_int_eq(f.last.exit_code, 7);
	ASK(&f, "exit 7");
	check_typed("\033[200~exit 7\033[201~\r");
	fake_take(&f);
	fake_out(&f, "exit\n");
	fake_prompt(&f, 7);
	check_completed(3, "exit", 7);
	ck_assert_uint_eq(f.acks, 2);
}
END_TEST

START_TEST(a_program_in_a_child_shell)
{
	ASK(&f, "bash");
	fake_begin(&f);
	nested_prompt(0);
	fake_readline(&f);
	ASK(&f, "cat");
	fake_take(&f);
	fake_wait(&f, FAKE_NO_CHANGE_MS);
	ASK(&f, "text", .is_input = true);
	check_typed("text\r");
}
END_TEST

/* ---- the terminal's answers, traces ---- */

START_TEST(queries_are_answered_while_something_runs)
{
	char reply[64];

	fake_out(&f, "\033[6n");
	ck_assert_uint_eq(hr_core_replies(f.core, reply, sizeof(reply)), 0);
	ASK(&f, "x");
	fake_begin(&f);
	fake_out(&f, "\033[6n");
	ck_assert_uint_eq(hr_core_replies(f.core, reply, sizeof(reply)), 6);
	ck_assert_int_eq(memcmp(reply, "\033[1;1R", 6), 0);
	fake_out(&f, "\033[c");
	fake_report(&f, 0);
	/* asked, but nobody is there to read the answer */
	ck_assert_uint_eq(hr_core_replies(f.core, reply, sizeof(reply)), 0);
}
END_TEST

START_TEST(the_hook_is_not_traced)
{
	struct hr_core_prompt p = {.job = -1,
	    .username = "me",
	    .working_dir = "/w",
	    .py_path = "",
	    .flags = "himvBs",
	    .is_session = true};

	ASK(&f, "set -v");
	fake_begin(&f);
	fake_out(&f, "printed\n");
	fake_out(&f, f.hook.prompt_command);
	fake_out(&f, "\n");
	hr_core_prompt(f.core, &p, f.now);
	ck_assert_str_eq(f.last.content, "printed");
}
END_TEST

/* What a full-screen program left behind that could not clean up. */
START_TEST(a_screen_whose_program_was_killed)
{
	ASK(&f, "vi file");
	fake_begin(&f);
	fake_out(&f, "before\n\033[?1049h\033[?1h\033[HIts screen");
	fake_out(&f, "Killed\n");
	fake_prompt(&f, 137);
	check_completed(1, "before", 137);
	ck_assert(!hr_core_application_cursor(f.core));
	/* one that ended by itself and left it on meant to show it */
	ASK(&f, "tput smcup");
	fake_begin(&f);
	fake_out(&f, "\033[?1049h\033[HA screen");
	fake_prompt(&f, 0);
	check_completed(2, "A screen", 0);
}
END_TEST

static TCase *
start_case(void)
{
	TCase *tc = tcase_create("start");

	tcase_add_checked_fixture(tc, fresh, core_teardown);
	tcase_add_test(tc, the_first_prompt);
	tcase_add_test(tc, a_command_for_a_shell_that_is_not_ready);
	tcase_add_test(tc, a_command_that_may_wait_for_the_shell);
	tcase_add_test(tc, no_shell_gets_ready_for_ever);
	tcase_add_test(tc, a_trace_that_never_ends);
	tcase_add_test(tc, a_first_start_that_never_ends);
	tcase_add_test(tc, a_start_that_never_ends);
	tcase_add_test(tc, the_first_start_needs_no_notice);
	return tc;
}

static TCase *
typing_case(void)
{
	TCase *tc = tcase_create("typing");

	tcase_add_checked_fixture(tc, core_setup, core_teardown);
	tcase_add_test(tc, every_byte_arrives);
	tcase_add_test(tc, control_characters_are_typed_literally);
	tcase_add_test(tc, names_of_keys_are_text_without_is_input);
	tcase_add_test(tc, keys_for_a_program);
	tcase_add_test(tc, interrupt_at_an_idle_prompt);
	tcase_add_test(tc, end_of_file_at_an_idle_prompt);
	tcase_add_test(tc, other_keys_do_nothing_to_an_empty_line);
	tcase_add_test(tc, readline_that_does_not_take_a_line);
#ifndef FAKE_RESUMES
	tcase_add_test(tc, the_rest_of_a_command_comes_as_input);
#endif
	tcase_add_test(tc, a_here_document_line_by_line);
	tcase_add_test(tc, an_incomplete_command_given_up);
	return tc;
}

static TCase *
late_case(void)
{
	TCase *tc = tcase_create("late");

	tcase_add_checked_fixture(tc, core_setup, core_teardown);
	tcase_add_test(tc, a_late_report_before_a_command);
	tcase_add_test(tc, a_late_report_after_a_command_was_typed);
	tcase_add_test(tc, a_late_report_of_a_command);
	tcase_add_test(tc, a_report_that_only_looks_late);
	return tc;
}

static TCase *
trouble_case(void)
{
	TCase *tc = tcase_create("trouble");

	tcase_add_checked_fixture(tc, core_setup, core_teardown);
	tcase_add_test(tc, a_lost_hook_is_put_back);
	tcase_add_test(tc, a_lost_hook_under_a_flood);
	tcase_add_test(tc, what_only_looks_like_a_lost_hook);
	tcase_add_test(tc, input_while_the_hook_is_put_back);
	tcase_add_loop_test(tc, a_shell_that_is_starved, 0, 2);
	tcase_add_test(tc, a_hook_that_cannot_be_put_back);
	tcase_add_test(tc, exit_completes_at_once);
	tcase_add_test(tc, exit_while_the_client_is_away);
	tcase_add_test(tc, exit_after_all_was_shown);
	tcase_add_test(tc, killed_at_rest);
	tcase_add_test(tc, killed_before_the_command_was_typed);
	tcase_add_test(tc, killed_while_a_line_was_taken);
	tcase_add_test(tc, no_new_shell);
	tcase_add_test(tc, a_child_shell);
	tcase_add_test(tc, a_program_in_a_child_shell);
	tcase_add_test(tc, queries_are_answered_while_something_runs);
	tcase_add_test(tc, the_hook_is_not_traced);
	tcase_add_test(tc, a_screen_whose_program_was_killed);
	return tc;
}

int
main(void)
{
	Suite *s = suite_create("core_shell");
	SRunner *sr;
	int failed;

	suite_add_tcase(s, start_case());
	suite_add_tcase(s, typing_case());
	suite_add_tcase(s, late_case());
	suite_add_tcase(s, trouble_case());
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
