/* The parts of host/cloud that need no request: cuts, pages, fields. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "host/cloud/cloud.h"
#include "host/direct/direct_int.h"
#include "proto/json.h"

/* A command may print nothing for as long as it likes; a stream that ends at once for ever may not.
 */
START_TEST(cuts)
{
	struct hr_cloud_cuts k = {.since_ms = 1000};
	int64_t now = 1000;
	int n = 0, i;

	for (i = 0; i < 500; i++)
		ck_assert(hr_cloud_goes_on(&k, false, now += 25000));
	for (i = 0; i < 500; i++)
		ck_assert(hr_cloud_goes_on(&k, true, now));
	while (hr_cloud_goes_on(&k, false, now += 10))
		n++;
	ck_assert_int_eq(n, 19);
}
END_TEST

START_TEST(pages)
{
	struct hr_err err = {0};
	unsigned n = 0;
	int i;

	for (i = 0; i < 1000; i++)
		ck_assert_int_eq(hr_cloud_page("X", &n, &err), 0);
	ck_assert_int_eq(hr_cloud_page("X", &n, &err), -1);
	ck_assert_str_eq(
	    err.msg, "X: the list of sandboxes does not end: it has more than 1000 pages");
}
END_TEST

static struct json_object *
parsed(const char *text)
{
	struct json_object *o = json_tokener_parse(text);

	ck_assert_ptr_nonnull(o);
	return o;
}

START_TEST(fields)
{
	struct json_object *o =
	    parsed("{\"t\":\"a\\nb\",\"z\":\"a\\u0000b\",\"f\":true,\"n\":5,\"d\":1.5,\"x\":null}");
	struct hr_err err = {0};
	const char *text;
	bool flag;
	double d;
	int code;
	size_t i;

	ck_assert_int_eq(hr_field_prose("W", "s", o, "t", &text, &err), 0);
	ck_assert_str_eq(text, "a\nb");
	ck_assert_int_eq(hr_field_maybe("W", "s", o, "t", &text, &err), -1);
	ck_assert_str_eq(err.msg, "W: \"t\" of s has a control character");
	ck_assert_int_eq(hr_field_text("W", "s", o, "z", &text, &err), -1);
	ck_assert_str_eq(err.msg, "W: \"z\" of s has a control character");
	ck_assert_int_eq(hr_field_flag("W", "s", o, "f", &flag, &err), 0);
	ck_assert(flag);
	ck_assert_int_eq(hr_field_number("W", "s", o, "n", &d, &err), 0);
	ck_assert_double_eq(d, 5);
	ck_assert_int_eq(hr_field_number("W", "s", o, "d", &d, &err), 0);
	ck_assert_double_eq(d, 1.5);
	for (i = 0; i < 2; i++) {
		const char *name = i == 0 ? "x" : "missing";

		ck_assert_int_eq(hr_field_prose("W", "s", o, name, &text, &err), 0);
		ck_assert_ptr_null(text);
		ck_assert_int_eq(hr_field_flag("W", "s", o, name, &flag, &err), 0);
		ck_assert(!flag);
		ck_assert_int_eq(hr_field_number("W", "s", o, name, &d, &err), 0);
		ck_assert_double_eq(d, 0);
	}
	ck_assert_int_eq(hr_field_prose("W", "s", o, "n", &text, &err), -1);
	ck_assert_str_eq(err.msg, "W: \"n\" of s is a number, not a text");
	ck_assert_int_eq(hr_field_flag("W", "s", o, "t", &flag, &err), -1);
	ck_assert_str_eq(err.msg, "W: \"t\" of s is a text, not a truth value");
	ck_assert_int_eq(hr_field_number("W", "s", o, "f", &d, &err), -1);
	ck_assert_str_eq(err.msg, "W: \"f\" of s is a truth value, not a number");
	json_object_put(o);
	o = parsed("{\"t\":\"a\\u0000b\",\"s\":255,\"m\":-1,\"l\":4294967296,\"n\":256,\"d\":3.0}");
	ck_assert_int_eq(hr_field_text("W", "s", o, "t", &text, &err), -1);
	ck_assert_str_eq(err.msg, "W: \"t\" of s has a control character");
	ck_assert_int_eq(hr_field_code("W", "s", o, "s", &code, &err), 0);
	ck_assert_int_eq(code, 255);
	ck_assert_int_eq(hr_field_code("W", "s", o, "m", &code, &err), 0);
	ck_assert_int_eq(code, -1);
	ck_assert_int_eq(hr_field_code("W", "s", o, "l", &code, &err), -1);
	ck_assert_str_eq(err.msg, "W: \"l\" of s is 4294967296, no exit status");
	ck_assert_int_eq(hr_field_code("W", "s", o, "n", &code, &err), -1);
	ck_assert_int_eq(hr_field_code("W", "s", o, "d", &code, &err), -1);
	ck_assert_str_eq(err.msg, "W: \"d\" of s is a number, not a whole number");
	json_object_put(o);
	o = parsed("[]");
	ck_assert_int_eq(hr_field_flag("W", "s", o, "t", &flag, &err), -1);
	ck_assert_str_eq(err.msg, "W: s is not a JSON object, so \"t\" is missing");
	ck_assert_int_eq(hr_field_number("W", "s", NULL, "t", &d, &err), -1);
	json_object_put(o);
}
END_TEST

static int
count(void *arg, const struct hr_cloud_found *f)
{
	(void)f;
	++*(int *)arg;
	return 0;
}

/* Where there is no id there is no list of sandboxes, whoever has made them. */
START_TEST(entries)
{
	static const struct hr_cloud_shape shape = {
	    .id = "id", .labels = "labels", .state = "state", .otherwise = "running"};
	struct json_object *ours = parsed("[{\"id\":\"a\",\"labels\":{\"handrail_run\":\"r\"}},"
					  "{\"id\":\"b\",\"labels\":{}},{\"id\":\"c\"}]");
	HR_PUT struct json_object *other = parsed("[{\"id\":5,\"labels\":{}},{\"id\":\"c\"}]");
	struct hr_err err = {0};
	int n = 0;

	ck_assert_int_eq(hr_cloud_entries("W", &shape, ours, NULL, count, &n, &err), 0);
	ck_assert_int_eq(n, 1);
	ck_assert_int_eq(hr_cloud_entries("W", &shape, other, NULL, count, &n, &err), -1);
	ck_assert_str_eq(err.msg, "W: \"id\" of a sandbox of the list is a number, not a text");
	json_object_put(ours);
}
END_TEST

/* Input for a running command must not run as a command: agents also send such flags as text. */
START_TEST(flags_of_actions)
{
	static const struct {
		const char *json;
		bool is_true;
	} rows[] = {{"{\"a\":true}", true}, {"{\"a\":\"true\"}", true}, {"{\"a\":false}", false},
	    {"{\"a\":\"false\"}", false}, {"{\"a\":\"\"}", false}, {"{\"a\":null}", false},
	    {"{}", false}};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		HR_PUT struct json_object *o = parsed(rows[i].json);

		ck_assert_msg(hr_direct_is_true(o, "a") == rows[i].is_true, "%s", rows[i].json);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("cloud");
	TCase *tc = tcase_create("cloud");
	SRunner *sr;
	int failed;

	tcase_add_test(tc, cuts);
	tcase_add_test(tc, pages);
	tcase_add_test(tc, fields);
	tcase_add_test(tc, entries);
	tcase_add_test(tc, flags_of_actions);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
