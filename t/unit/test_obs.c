/* Observations and error answers as they go over the wire. */
#include "config.h"

#include "proto/obs.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "proto/httperr.h"

#include "lines.h"

START_TEST(run_completed)
{
	struct hr_run_result r = {.has_metadata = true,
	    .exit_code = 0,
	    .pid = -1,
	    .content = HR_OBS_SPAN("hi"),
	    .command = HR_OBS_SPAN("echo hi"),
	    .username = HR_OBS_SPAN("openhands"),
	    .hostname = HR_OBS_SPAN("a1b2c3"),
	    .working_dir = HR_OBS_SPAN("/workspace"),
	    .py_path = HR_OBS_SPAN("/usr/bin/python"),
	    .suffix = HR_OBS_SPAN("\n[The command completed with exit code 0.]")};
	struct hr_arg no = {.type = HR_PY_BOOL}; /* the default: nothing was given */
	HR_BUF(b, 1 << 20);

	ck_assert_int_eq(hr_obs_put_run(&b, &r, &no), 0);
	ck_assert_str_eq(b.p,
	    "{\"message\":\"Command `echo hi` executed with exit code 0.\",\"observation\":\"run\","
	    "\"content\":\"hi\",\"extras\":{\"command\":\"echo hi\",\"metadata\":{\"exit_code\":0,"
	    "\"pid\":-1,\"username\":\"openhands\",\"hostname\":\"a1b2c3\","
	    "\"working_dir\":\"/workspace\",\"py_interpreter_path\":\"/usr/bin/python\","
	    "\"prefix\":\"\",\"suffix\":\"\\n[The command completed with exit code 0.]\"},"
	    "\"hidden\":false},\"success\":true}");
	hr_buf_reset(&b);
	r.id = 3;
	r.log_start = 4;
	r.log_end = 7;
	ck_assert_int_eq(hr_obs_put_run(&b, &r, &no), 0);
	ck_assert_ptr_nonnull(
	    strstr(b.p, "]\"},\"hidden\":false,\"output\":{\"command\":3,\"start\":4,\"end\":7}},"
			"\"success\":true}"));
}
END_TEST

START_TEST(run_without_metadata)
{
	struct hr_run_result r = {.exit_code = -1,
	    .pid = -1,
	    .content = HR_OBS_SPAN("a\xff"
				   "b"),
	    .command = HR_OBS_SPAN("x \"y\""),
	    .username = HR_OBS_SPAN("ignored")};
	struct hr_arg null = {.type = HR_PY_NONE};
	HR_BUF(b, 1 << 20);

	ck_assert_int_eq(hr_obs_put_run(&b, &r, &null), 0);
	ck_assert_str_eq(b.p,
	    "{\"message\":\"Command `x \\\"y\\\"` executed with exit code -1.\","
	    "\"observation\":\"run\",\"content\":\"a\xEF\xBF\xBD"
	    "b\",\"extras\":{"
	    "\"command\":\"x \\\"y\\\"\",\"metadata\":{\"exit_code\":-1,\"pid\":-1,"
	    "\"username\":null,\"hostname\":null,\"working_dir\":null,"
	    "\"py_interpreter_path\":null,\"prefix\":\"\",\"suffix\":\"\"},\"hidden\":null},"
	    "\"success\":false}");
}
END_TEST

START_TEST(run_error)
{
	struct hr_run_result r = {.is_error = true, .content = HR_OBS_SPAN("no \"way\"\n")};
	struct hr_arg no = {.type = HR_PY_BOOL};
	HR_BUF(b, 1 << 20);

	ck_assert_int_eq(hr_obs_put_run(&b, &r, &no), 0);
	ck_assert_str_eq(b.p, "{\"message\":\"no \\\"way\\\"\\n\",\"observation\":\"error\","
			      "\"content\":\"no \\\"way\\\"\\n\",\"extras\":{\"error_id\":\"\"}}");
}
END_TEST

START_TEST(hidden_without_json_form)
{
	struct hr_run_result r = {.exit_code = 0};
	struct hr_arg nan = {.type = HR_PY_FLOAT, .given = json_object_new_double(0.0 / 0.0)};
	HR_BUF(b, 1 << 20);

	ck_assert_int_eq(hr_obs_put_run(&b, &r, &nan), -1);
	json_object_put(nan.given);
}
END_TEST

START_TEST(general)
{
	const struct hr_obs_extra extras[] = {
	    {.name = "path", .kind = HR_OBS_STR, .str = HR_OBS_SPAN("/a")},
	    {.name = "prev_exist", .kind = HR_OBS_BOOL},
	    {.name = "old_content", .kind = HR_OBS_NULL},
	};
	struct hr_obs o = {.type = "edit",
	    .message = {HR_OBS_SPAN("I edited the file "), HR_OBS_SPAN("/a"), HR_OBS_SPAN(".")},
	    .content = HR_OBS_SPAN("c"),
	    .extras = extras,
	    .extras_n = 3,
	    .bad = HR_JSON_REFUSE};
	HR_BUF(b, 1 << 20);

	ck_assert_int_eq(hr_obs_put(&b, &o), 0);
	ck_assert_str_eq(b.p, "{\"message\":\"I edited the file /a.\",\"observation\":\"edit\","
			      "\"content\":\"c\",\"extras\":{\"path\":\"/a\",\"prev_exist\":false,"
			      "\"old_content\":null}}");
	hr_buf_reset(&b);
	o.content = HR_OBS_SPAN("\xED\xB2\x80");
	ck_assert_int_eq(hr_obs_put(&b, &o), -1);
}
END_TEST

#define GENERIC "{\"detail\":\"An unexpected error occurred. Please try again later.\"}"

START_TEST(answers)
{
	struct hr_answer a;
	HR_BUF(text, 16);

	hr_answer_init(&a);
	hr_answer_detail(&a, 404, "Not Found");
	ck_assert_int_eq(a.status, 404);
	ck_assert_str_eq(a.body.p, "{\"detail\":\"Not Found\"}");
	hr_buf_adds(&text, "x \"y\"");
	hr_answer_internal(&a, &text);
	ck_assert_int_eq(a.status, 500);
	ck_assert_str_eq(a.body.p, "{\"detail\":\"Internal server error: x \\\"y\\\"\"}");
	hr_answer_invalid(&a, &text);
	ck_assert_int_eq(a.status, 422);
	ck_assert_str_eq(
	    a.body.p, "{\"detail\":\"Invalid request parameters\",\"errors\":\"x \\\"y\\\"\"}");
	hr_buf_reset(&text);
	hr_buf_adds(&text, "\xED\xA0\x80");
	hr_answer_internal(&a, &text);
	ck_assert_str_eq(a.body.p, GENERIC);
	hr_answer_invalid(&a, &text);
	ck_assert_int_eq(a.status, 500);
	hr_buf_adds(&text, "0123456789abcdef");
	hr_answer_internal(&a, &text);
	ck_assert_str_eq(a.body.p, GENERIC);
	a.retry_after_s = 1;
	hr_answer_reset(&a);
	ck_assert_int_eq(a.status, 200);
	ck_assert_int_eq(a.retry_after_s, 0);
	ck_assert_uint_eq(a.body.len, 0);
	hr_answer_done(&a);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("obs");
	TCase *c = tcase_create("obs");

	tcase_add_test(c, run_completed);
	tcase_add_test(c, run_without_metadata);
	tcase_add_test(c, run_error);
	tcase_add_test(c, hidden_without_json_form);
	tcase_add_test(c, general);
	tcase_add_test(c, answers);
	suite_add_tcase(s, c);
	return lines_run(s);
}
