/* Cells: what of a kernel's messages is shown; and the signature of messages. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "plugins/jupyter/answer.h"
#include "plugins/jupyter/cell.h"
#include "plugins/jupyter/wire.h"
#include "proto/frame.h"
#include "proto/json.h"

static struct hr_cell cell;

static void
setup(void)
{
	hr_cell_init(&cell);
	memcpy(cell.id, "me", 3);
}

static void
teardown(void)
{
	hr_cell_done(&cell);
}

static struct json_object *
parse(const char *text)
{
	struct json_object *v = NULL;
	struct hr_json_error e;

	ck_assert_int_eq(hr_json_decode(text, strlen(text), &v, &e), 0);
	return v;
}

static void
feed(bool reply, const char *parent, const char *type, const char *content)
{
	HR_CLEAN(hr_wire_message_done)
	struct hr_wire_message m = {NULL, NULL, parse(content), type, parent};

	if (reply)
		hr_cell_reply(&cell, &m);
	else
		hr_cell_output(&cell, &m);
}

static void
output(const char *type, const char *content)
{
	feed(false, "me", type, content);
}

static void
shows(const char *want)
{
	HR_BUF(b, 1 << 20);

	hr_cell_put(&b, &cell);
	ck_assert_str_eq(hr_buf_str(&b), want);
}

START_TEST(over_after_reply_and_idle_of_its_own)
{
	feed(true, "other", "execute_reply", "{\"status\": \"ok\"}");
	feed(false, "other", "status", "{\"execution_state\": \"idle\"}");
	output("status", "{\"execution_state\": \"busy\"}");
	ck_assert(!cell.replied && !cell.idle);
	feed(true, "me", "execute_reply", "{\"status\": \"ok\"}");
	ck_assert(!hr_cell_over(&cell));
	output("stream", "{\"name\": \"stdout\", \"text\": \"late\"}");
	output("status", "{\"execution_state\": \"idle\"}");
	ck_assert(hr_cell_over(&cell));
	shows("late");
}
END_TEST

START_TEST(idle_may_come_first)
{
	output("status", "{\"execution_state\": \"idle\"}");
	ck_assert(!hr_cell_over(&cell));
	feed(true, "me", "execute_reply", "{\"status\": \"error\"}");
	ck_assert(hr_cell_over(&cell));
	shows("[Code executed successfully with no output]");
}
END_TEST

START_TEST(an_unsent_cell_takes_nothing)
{
	cell.id[0] = '\0';
	feed(false, "", "stream", "{\"text\": \"from nobody\"}");
	feed(true, "", "execute_reply", "{}");
	ck_assert(!cell.has_text && !cell.replied);
}
END_TEST

START_TEST(pieces_follow_each_other)
{
	output("stream", "{\"name\": \"stdout\", \"text\": \"a\\n\"}");
	output("stream", "{\"name\": \"stderr\", \"text\": \"b\"}");
	output("execute_input", "{\"code\": \"x\"}");
	output("update_display_data", "{\"data\": {\"text/plain\": \"no\"}}");
	output("clear_output", "{\"wait\": false}");
	output("execute_result", "{\"data\": {\"text/plain\": \"c\"}}");
	output("display_data", "{\"data\": {\"text/plain\": \"d\", \"text/html\": \"<b>\"}}");
	shows("a\nbcd");
	ck_assert_uint_eq(cell.images.len, 0);
}
END_TEST

START_TEST(after_an_error_nothing)
{
	output("stream", "{\"text\": \"before \"}");
	output("error", "{\"ename\": \"E\", \"traceback\": [\"one\", \"two\"]}");
	output("stream", "{\"text\": \"after\"}");
	output("status", "{\"execution_state\": \"idle\"}");
	shows("before one\ntwo");
	ck_assert(cell.failed && cell.idle);
}
END_TEST

START_TEST(broken_messages_are_nothing)
{
	output("stream", "{}");
	output("stream", "{\"text\": 5}");
	output("execute_result", "{\"data\": []}");
	output("display_data", "{\"data\": {\"text/plain\": null, \"image/png\": 7}}");
	output("status", "{\"execution_state\": null}");
	ck_assert(!cell.has_text && !cell.idle);
	output("error", "{\"traceback\": \"x\"}");
	ck_assert(cell.failed);
	shows("");
}
END_TEST

START_TEST(images_lose_their_blanks)
{
	output("display_data", "{\"data\": {\"image/png\": \"QU\\nJD\\n \"}}");
	output("display_data", "{\"data\": {\"image/png\": \"RUZH\", \"text/plain\": \"<F>\"}}");
	ck_assert_str_eq(hr_buf_str(&cell.images),
	    "\"data:image/png;base64,QUJD\",\"data:image/png;base64,RUZH\"");
	shows("<F>");
}
END_TEST

START_TEST(exits_and_aborts)
{
	feed(true, "me", "execute_reply",
	    "{\"status\": \"ok\", \"payload\": [{\"source\": \"page\"}, {\"source\": \"ask_exit\","
	    " \"keepkernel\": false}]}");
	ck_assert(cell.exiting && !cell.aborted);
	feed(true, "me", "execute_reply",
	    "{\"status\": \"aborted\", \"payload\": [{\"source\": \"ask_exit\", \"keepkernel\": "
	    "true}]}");
	ck_assert(!cell.exiting && cell.aborted);
}
END_TEST

static const struct {
	const char *text, *want;
} colours[] = {
    {"\033[31mred\033[0m", "red"},
    {"\033[1;31mx\033[38;5;241mx", "xx"},
    {"\033[38;5;241;43mx", "\033[38;5;241;43mx"},
    {"\033[mx\033[;1mx\033[1;mx", "\033[mx\033[;1mx\033[1;mx"},
    {"\033[2Kx\033[1", "\033[2Kx\033[1"},
    {"\033\033[1mx\033[", "\033x\033["},
    {"\033[123456789mx", "x"},
    {"", ""},
};

START_TEST(colours_go)
{
	HR_BUF(b, 1000);

	hr_buf_adds(&b, colours[_i].text);
	hr_cell_strip_colours(&b);
	ck_assert_str_eq(hr_buf_str(&b), colours[_i].want);
}
END_TEST

START_TEST(a_flood_is_counted)
{
	HR_FREE char *line = malloc((1 << 20) + 64);
	const char head[] = "{\"text\": \"";
	size_t n = sizeof(head) - 1;
	int i;

	ck_assert_ptr_nonnull(line);
	memcpy(line, head, n);
	memset(line + n, 'x', 1 << 20);
	memcpy(line + n + (1 << 20), "\"}", 3);
	for (i = 0; i < 65; i++)
		output("stream", line);
	ck_assert_uint_eq(cell.text.len, HR_CELL_TEXT_MAX);
	ck_assert_uint_eq(cell.dropped, 1 << 20);
	output("stream", "{\"text\": \"y\"}");
	ck_assert_uint_eq(cell.dropped, (1 << 20) + 1);
}
END_TEST

START_TEST(the_observation)
{
	struct hr_cell_answer a = {.code = "1+1",
	    .code_len = 3,
	    .cell = &cell,
	    .first_words = "",
	    .last_words = "",
	    .include_extra = true,
	    .dir = "/w",
	    .path = "/p"};
	struct hr_act_answer got;
	HR_BUF(b, 1 << 20);

	output("stream", "{\"text\": \" 2 \\t\\n\\u2003\\n\"}");
	hr_answer_put_cell(&b, &a);
	ck_assert_int_eq(hr_buf_check(&b, NULL), 0);
	ck_assert_int_eq(
	    hr_frame_get_answer(b.p + HR_FRAME_HEADER, b.len - HR_FRAME_HEADER, &got, NULL), 0);
	ck_assert_int_eq(got.status, 200);
	ck_assert_int_eq(
	    strncmp(got.body.p,
		"{\"message\":\"Code executed in IPython cell.\",\"observation\":"
		"\"run_ipython\",\"content\":\" 2\\n[Jupyter current working directory: "
		"/w]\\n[Jupyter Python interpreter: /p]\",\"extras\":{\"code\":\"1+1\","
		"\"image_urls\":null},\"success\":true}",
		got.body.len),
	    0);
}
END_TEST

/* RFC 4231, test case 2. */
START_TEST(signatures)
{
	const struct hr_wire_part parts[] = {
	    {"what do ya ", 11}, {"want ", 5}, {"", 0}, {"for nothing?", 12}};
	char mac[HR_WIRE_MAC];

	ck_assert_int_eq(hr_wire_sign("Jefe", parts, 4, mac, NULL), 0);
	ck_assert_str_eq(mac, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("jupyter");
	TCase *tc = tcase_create("cell");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, over_after_reply_and_idle_of_its_own);
	tcase_add_test(tc, idle_may_come_first);
	tcase_add_test(tc, an_unsent_cell_takes_nothing);
	tcase_add_test(tc, pieces_follow_each_other);
	tcase_add_test(tc, after_an_error_nothing);
	tcase_add_test(tc, broken_messages_are_nothing);
	tcase_add_test(tc, images_lose_their_blanks);
	tcase_add_test(tc, exits_and_aborts);
	tcase_add_loop_test(tc, colours_go, 0, (int)(sizeof(colours) / sizeof(colours[0])));
	tcase_add_test(tc, a_flood_is_counted);
	tcase_add_test(tc, the_observation);
	tcase_add_test(tc, signatures);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
