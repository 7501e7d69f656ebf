/* Python's texts of values: repr, float(), truth, and literals. */
#include "config.h"

#include "proto/python/repr.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/text/floatrepr.h"
#include "proto/python/literal.h"
#include "proto/python/lower.h"
#include "proto/json.h"

#include "lines.h"

static struct json_object *
parse(const char *text)
{
	struct json_object *v = NULL;
	struct hr_json_error e;

	ck_assert_msg(hr_json_decode(text, strlen(text), &v, &e) == 0, "%s", text);
	return v;
}

static void
check_repr(const char *json, const char *want)
{
	HR_BUF(b, 1 << 16);
	HR_PUT struct json_object *v = parse(json);

	hr_pyrepr(&b, v);
	ck_assert_str_eq(hr_buf_str(&b), want);
}

START_TEST(reprs)
{
	check_repr("{\"action\":\"run\",\"args\":{\"command\":\"it's\",\"x\":null}}",
	    "{'action': 'run', 'args': {'command': \"it's\", 'x': None}}");
	check_repr("[1.0,1e20,1e-7,-0.0,-0,12345678901234567890,true,{}]",
	    "[1.0, 1e+20, 1e-07, -0.0, 0, 12345678901234567890, True, {}]");
	check_repr("\"tab\\tnl\\nq'\\\"\\\\\"", "'tab\\tnl\\nq\\'\"\\\\'");
	check_repr("\"\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x98\x80\\u200b\\u00a0\\u0000\\u007f\"",
	    "'\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x98\x80\\u200b\\xa0\\x00\\x7f'");
	check_repr("\"\\udc80 \\ud800x\"", "'\\udc80 \\ud800x'");
	check_repr("{\"a\\u0000b\":1}", "{'a\\x00b': 1}");
	check_repr("\"\\udb40\\udc01\"", "'\\U000e0001'");
}
END_TEST

START_TEST(bytes)
{
	static const char in[] = "{\"a\": 'x'}\n\x00\xff\\";
	HR_BUF(b, 1 << 16);

	hr_pyrepr_bytes(&b, "{\"action\":{}}", 13);
	ck_assert_str_eq(b.p, "b'{\"action\":{}}'");
	hr_buf_reset(&b);
	hr_pyrepr_bytes(&b, in, sizeof(in) - 1);
	ck_assert_str_eq(b.p, "b'{\"a\": \\'x\\'}\\n\\x00\\xff\\\\'");
	hr_buf_reset(&b);
	hr_pyrepr_bytes(&b, "it's", 4);
	ck_assert_str_eq(b.p, "b\"it's\"");
}
END_TEST

START_TEST(named_int)
{
	HR_BUF(b, 100);
	HR_PUT struct json_object *v = hr_pyrepr_named_int(2, "<Risk.HIGH: 2>");

	hr_pyrepr(&b, v);
	ck_assert_str_eq(b.p, "<Risk.HIGH: 2>");
	hr_buf_reset(&b);
	ck_assert_int_eq(hr_json_put(&b, v), 0);
	ck_assert_str_eq(b.p, "2");
}
END_TEST

START_TEST(truth)
{
	static const char *const yes[] = {"true", "1", "-1", "0.5", "NaN", "\"false\"", "\" \"",
	    "[0]", "{\"a\":0}", "123456789012345678901234567890"};
	static const char *const no[] = {
	    "null", "false", "0", "-0", "0.0", "-0.0", "\"\"", "[]", "{}"};
	struct json_object *v;
	size_t i;

	for (i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		v = parse(yes[i]);
		ck_assert_msg(hr_py_truthy(v), "%s", yes[i]);
		json_object_put(v);
	}
	for (i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		v = parse(no[i]);
		ck_assert_msg(!hr_py_truthy(v), "%s", no[i]);
		json_object_put(v);
	}
}
END_TEST

/* want: the float's repr, or the error text */
static void
check_float(const char *json, const char *want)
{
	HR_BUF(b, 1 << 16);
	HR_PUT struct json_object *v = parse(json);
	double d;

	if (hr_py_float(v, &d, &b) == 0)
		hr_float_repr(&b, d);
	ck_assert_str_eq(hr_buf_str(&b), want);
}

START_TEST(floats)
{
	check_float("5", "5.0");
	check_float("true", "1.0");
	check_float("\"2\"", "2.0");
	check_float("\" 1_0.5_0e+1_0\\n\"", "105000000000.0");
	check_float("\".5\"", "0.5");
	check_float("\"5.\"", "5.0");
	check_float("\"-Infinity\"", "-inf");
	check_float("\"+nan\"", "nan");
	check_float("\"1e400\"", "inf");
	check_float("\"\\u3000 7\\u00a0\"", "7.0");
	check_float("123456789012345678901234567890", "1.2345678901234568e+29");
	check_float("\"abc\"", "could not convert string to float: 'abc'");
	check_float("\"\"", "could not convert string to float: ''");
	check_float("\"1 2\"", "could not convert string to float: '1 2'");
	check_float("\"0x10\"", "could not convert string to float: '0x10'");
	check_float("\"1__0\"", "could not convert string to float: '1__0'");
	check_float("\"_1\"", "could not convert string to float: '_1'");
	check_float("\".\"", "could not convert string to float: '.'");
	check_float("\"1e\"", "could not convert string to float: '1e'");
	check_float("\"infin\"", "could not convert string to float: 'infin'");
	check_float("\"1\\u0000\"", "could not convert string to float: '1\\x00'");
	check_float("[1]", "float() argument must be a string or a real number, not 'list'");
	check_float("{}", "float() argument must be a string or a real number, not 'dict'");
}
END_TEST

START_TEST(float_overflow)
{
	char text[402];

	memset(text, '9', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	check_float(text, "int too large to convert to float");
}
END_TEST

/* Source and the repr of what ast.literal_eval makes of it, tuples as lists; "-" if nothing. */
START_TEST(corpus_literal)
{
	FILE *f = lines_open("json/literal.txt");
	char *tab;
	HR_FREE char *line = NULL;
	size_t cap = 0;
	int n = 0;

	while (lines_next(f, &line, &cap)) {
		struct json_object *v = NULL;
		HR_BUF(in, 1 << 16);
		HR_BUF(want, 1 << 16);
		HR_BUF(got, 1 << 16);

		tab = strchr(line, '\t');
		ck_assert(tab != NULL);
		*tab = '\0';
		lines_unhex(&in, line);
		if (strcmp(tab + 1, "-") == 0)
			hr_buf_adds(&want, "-");
		else
			lines_unhex(&want, tab + 1);
		if (hr_pyliteral(hr_buf_str(&in), in.len, &v) == 0)
			hr_pyrepr(&got, v);
		else
			hr_buf_adds(&got, "-");
		ck_assert_msg(strcmp(hr_buf_str(&got), hr_buf_str(&want)) == 0,
		    "%s: want %s, got %s", hr_buf_str(&in), hr_buf_str(&want), hr_buf_str(&got));
		json_object_put(v);
		hr_buf_done(&in);
		hr_buf_done(&want);
		hr_buf_done(&got);
		n++;
	}
	(void)fclose(f);
	ck_assert_int_gt(n, 200);
}
END_TEST

START_TEST(literal_depth)
{
	struct json_object *v;
	HR_FREE char *s = malloc(1 << 20);

	ck_assert(s != NULL);
	memset(s, '[', 1 << 20);
	ck_assert_int_eq(hr_pyliteral(s, 1 << 20, &v), -1);
}
END_TEST

/* str.lower(); the letter sigma has another form at the end of a word. */
START_TEST(lower)
{
	static const char *const rows[][2] = {{"", ""}, {"aZ09@[`{AM", "az09@[`{am"},
	    {"\xC3\x84\xE6\xBC\xA2\xD0\x96", "\xC3\xA4\xE6\xBC\xA2\xD0\xB6"},
	    {"\xC4\xB0", "i\xCC\x87"}, {"\xCE\xA3", "\xCF\x83"}, {"A\xCE\xA3", "a\xCF\x82"},
	    {"A\xCE\xA3"
	     "B",
		"a\xCF\x83"
		"b"},
	    {"A.\xCE\xA3 B", "a.\xCF\x82 b"}, {"A\xCE\xA3.b", "a\xCF\x83.b"},
	    {"1\xCE\xA3", "1\xCF\x83"}};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		HR_BUF(b, 100);
		HR_BUF(more, 100);

		hr_buf_addf(&more, "%sX", rows[i][0]); /* of which the end is no part */
		hr_pylower(&b, hr_buf_str(&more), more.len - 1);
		ck_assert_str_eq(hr_buf_str(&b), rows[i][1]);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("pyrepr");
	TCase *c = tcase_create("pyrepr");

	tcase_add_test(c, reprs);
	tcase_add_test(c, bytes);
	tcase_add_test(c, named_int);
	tcase_add_test(c, truth);
	tcase_add_test(c, floats);
	tcase_add_test(c, float_overflow);
	tcase_add_test(c, corpus_literal);
	tcase_add_test(c, literal_depth);
	tcase_add_test(c, lower);
	suite_add_tcase(s, c);
	return lines_run(s);
}
