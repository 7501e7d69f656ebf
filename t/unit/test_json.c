/* Reading and writing JSON as Python does. */
#include "config.h"

#include "proto/json.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "proto/python/repr.h"
#include "base/text/utf8.h"

#include "lines.h"

static void
put_hex(struct hr_buf *b, const struct hr_buf *bytes)
{
	size_t i;

	for (i = 0; i < bytes->len; i++)
		hr_buf_addf(b, "%02x", (unsigned char)bytes->p[i]);
}

/* The verdict in the words of decode.txt. */
static void
verdict(struct hr_buf *b, const char *p, size_t len)
{
	struct json_object *v = NULL;
	struct hr_json_error e;
	HR_BUF(text, 1 << 20);

	if (hr_json_decode(p, len, &v, &e) < 0) {
		if (e.verdict == HR_JSON_SYNTAX)
			hr_buf_addf(b, "syntax %zu %s", e.pos, e.text);
		else
			hr_buf_adds(b, "nottext");
		return;
	}
	hr_pyrepr(&text, v);
	hr_buf_adds(b, "ok ");
	put_hex(b, &text);
	hr_buf_addc(b, ' ');
	hr_buf_reset(&text);
	if (hr_json_put(&text, v) < 0)
		hr_buf_addc(b, '-');
	else
		put_hex(b, &text);
	json_object_put(v);
}

START_TEST(corpus_decode)
{
	FILE *f = lines_open("json/decode.txt");
	char *tab;
	HR_FREE char *line = NULL;
	size_t cap = 0;
	int n = 0;

	while (lines_next(f, &line, &cap)) {
		HR_BUF(body, 1 << 20);
		HR_BUF(got, 1 << 20);

		tab = strchr(line, '\t');
		ck_assert(tab != NULL);
		*tab = '\0';
		lines_unhex(&body, line);
		verdict(&got, hr_buf_str(&body), body.len);
		ck_assert_msg(strcmp(hr_buf_str(&got), tab + 1) == 0, "%s:\nwant %s\ngot  %s", line,
		    tab + 1, hr_buf_str(&got));
		hr_buf_done(&body);
		hr_buf_done(&got);
		n++;
	}
	(void)fclose(f);
	ck_assert_int_gt(n, 800);
}
END_TEST

static enum hr_json_verdict
decode_repeated(const char *unit, size_t times, const char *tail)
{
	struct json_object *v = NULL;
	struct hr_json_error e = {.verdict = HR_JSON_OK};
	HR_BUF(b, 16u << 20);
	size_t i;

	for (i = 0; i < times; i++)
		hr_buf_adds(&b, unit);
	hr_buf_adds(&b, tail);
	if (hr_json_decode(b.p, b.len, &v, &e) == 0)
		json_object_put(v);
	return e.verdict;
}

START_TEST(depth_is_limited)
{
	ck_assert_int_eq(decode_repeated("[", 1 << 20, ""), HR_JSON_LIMIT);
	ck_assert_int_eq(decode_repeated("{\"a\":", 1 << 20, ""), HR_JSON_LIMIT);
	ck_assert_int_eq(decode_repeated("[", HR_JSON_DEPTH + 1, ""), HR_JSON_LIMIT);
	ck_assert_int_eq(decode_repeated("[", HR_JSON_DEPTH, ""), HR_JSON_SYNTAX);
}
END_TEST

/* Python limits the digits of an integer, and not those of a number with a fraction or an
 * exponent. */
START_TEST(digits_are_limited)
{
	ck_assert_int_eq(decode_repeated("1", HR_JSON_INT_DIGITS, ""), HR_JSON_OK);
	ck_assert_int_eq(decode_repeated("1", HR_JSON_INT_DIGITS + 1, ""), HR_JSON_LIMIT);
	ck_assert_int_eq(decode_repeated("1", HR_JSON_INT_DIGITS + 1, ".5"), HR_JSON_OK);
	ck_assert_int_eq(decode_repeated("1", HR_JSON_INT_DIGITS + 1, "e5"), HR_JSON_OK);
	ck_assert_int_eq(decode_repeated("1", HR_JSON_INT_DIGITS + 1, "e+"), HR_JSON_LIMIT);
}
END_TEST

START_TEST(deepest_is_parsed)
{
	HR_PUT struct json_object *v = NULL;
	struct hr_json_error e;
	HR_BUF(b, 1 << 20);
	HR_BUF(out, 1 << 20);
	int i;

	for (i = 0; i < HR_JSON_DEPTH; i++)
		hr_buf_addc(&b, '[');
	for (i = 0; i < HR_JSON_DEPTH; i++)
		hr_buf_addc(&b, ']');
	ck_assert_int_eq(hr_json_decode(b.p, b.len, &v, &e), 0);
	ck_assert_int_eq(hr_json_put(&out, v), 0);
	ck_assert_str_eq(out.p, b.p);
}
END_TEST

/* What hr_json_put would refuse, leave out or, by json-c's own writer, spoil. */
START_TEST(whole_values)
{
	static const struct {
		const char *text, *want;
	} cases[] = {
	    {"{\"_sa\":1,\"a\\u0000b\":2}", "{\"_sa\":1,\"a\\u0000b\":2}"},
	    {"[12345678901234567890,-12345678901234567890]",
		"[12345678901234567890,-12345678901234567890]"},
	    {"[NaN,Infinity,-Infinity,1e999,0.5]", "[null,null,null,null,0.5]"},
	    {"{\"\\ud800\":\"x\\udfffy\"}", "{\"\xEF\xBF\xBD\":\"x\xEF\xBF\xBDy\"}"},
	    {"\"a\\u0000b/\"", "\"a\\u0000b/\""},
	    {"null", "null"},
	};
	struct json_object *v;
	struct hr_json_error e;
	struct hr_buf b;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		v = NULL;
		hr_buf_init(&b, 1 << 10);
		ck_assert_int_eq(hr_json_decode(cases[i].text, strlen(cases[i].text), &v, &e), 0);
		hr_json_put_whole(&b, v);
		ck_assert_str_eq(hr_buf_str(&b), cases[i].want);
		json_object_put(v);
		hr_buf_done(&b);
	}
}
END_TEST

START_TEST(members_are_set)
{
	HR_PUT struct json_object *o = json_object_new_object();
	struct hr_err err = {0};

	ck_assert_int_eq(hr_json_set(o, "a", json_object_new_int(1), &err), 0);
	ck_assert_int_eq(hr_json_set(o, "a", json_object_new_int(2), &err), 0);
	ck_assert_int_eq(hr_json_int_at(o, "a"), 2);
	ck_assert_int_eq(hr_json_set(o, "a", NULL, NULL), -1);
	ck_assert_int_eq(hr_json_set(o, "b", NULL, &err), -1);
	ck_assert_int_eq(err.code, HR_E_NOMEM);
	ck_assert_int_eq(hr_json_int_at(o, "a"), 2);
	ck_assert_ptr_null(hr_json_at(o, "b"));
}
END_TEST

START_TEST(long_integers)
{
	ck_assert_int_eq(decode_repeated("7", HR_JSON_INT_DIGITS, ""), HR_JSON_OK);
	ck_assert_int_eq(decode_repeated("7", HR_JSON_INT_DIGITS + 1, ""), HR_JSON_LIMIT);
	ck_assert_int_eq(decode_repeated("7", HR_JSON_INT_DIGITS + 1, ".0"), HR_JSON_OK);
}
END_TEST

START_TEST(too_many_values)
{
	struct json_object *v;
	struct hr_json_error e;
	HR_BUF(b, 16u << 20);
	size_t i;

	hr_buf_adds(&b, "[0");
	for (i = 1; i < HR_JSON_VALUES_MAX; i++)
		hr_buf_adds(&b, ",0");
	hr_buf_adds(&b, "]");
	ck_assert_int_eq(hr_json_decode(b.p, b.len, &v, &e), -1);
	ck_assert_int_eq(e.verdict, HR_JSON_LIMIT);
}
END_TEST

static void
check_escape(const char *in, size_t len, enum hr_json_bad bad, const char *want)
{
	HR_BUF(b, 1 << 20);
	int r;

	r = hr_json_put_str(&b, in, len, bad);
	if (want == NULL) {
		ck_assert_int_eq(r, -1);
	} else {
		ck_assert_int_eq(r, 0);
		ck_assert_int_eq(b.fail, HR_OK);
		ck_assert_str_eq(hr_buf_str(&b), want);
	}
}

#define ESCAPE(in, bad, want) check_escape(in, sizeof(in) - 1, bad, want)

START_TEST(escapes)
{
	ESCAPE("", HR_JSON_REFUSE, "\"\"");
	ESCAPE("a/b\"c\\d", HR_JSON_REFUSE, "\"a/b\\\"c\\\\d\"");
	ESCAPE("\b\f\n\r\t\x01\x1f\x7f", HR_JSON_REFUSE, "\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\"");
	ESCAPE("a\0b", HR_JSON_REFUSE, "\"a\\u0000b\"");
	ESCAPE("\xC3\xA9\xE2\x80\xA8", HR_JSON_REFUSE, "\"\xC3\xA9\xE2\x80\xA8\"");
	ESCAPE("12345678\"2345678\n", HR_JSON_REFUSE, "\"12345678\\\"2345678\\n\"");
}
END_TEST

START_TEST(bad_bytes)
{
	ESCAPE("x\xED\xA0\x80y", HR_JSON_REFUSE, NULL);
	ESCAPE("x\xFFy", HR_JSON_REFUSE, NULL);
	ESCAPE("x\xED\xA0\x80y", HR_JSON_REPLACE, "\"x\xEF\xBF\xBDy\"");
	ESCAPE("x\xFFy\xC3", HR_JSON_REPLACE, "\"x\xEF\xBF\xBDy\xEF\xBF\xBD\"");
	ESCAPE("\xE2\x82(\xF0\x9F\x98", HR_JSON_REPLACE, "\"\xEF\xBF\xBD(\xEF\xBF\xBD\"");
	ESCAPE("\xC0\x80\xF5", HR_JSON_REPLACE, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}
END_TEST

/* Every position of a special byte against every length up to three words, and characters across
 * the escaper's chunk border, must come out as a byte-wise escaper writes them. */
START_TEST(escape_positions)
{
	static const char *const specials[] = {"\"", "\n", "\xC3\xA9", "\xF0\x9F\x98\x80", "\x1f"};
	static const char *const written[] = {
	    "\\\"", "\\n", "\xC3\xA9", "\xF0\x9F\x98\x80", "\\u001f"};
	size_t len, at, k;

	for (k = 0; k < 5; k++)
		for (len = 0; len < 24; len++)
			for (at = 0; at <= len; at++) {
				char in[40] = "", want[80] = "\"";

				memset(in, '~', len);
				memcpy(in + at, specials[k], strlen(specials[k]));
				in[at + strlen(specials[k]) + len - at] = '\0';
				memset(in + at + strlen(specials[k]), '!', len - at);
				memcpy(want + 1, in, at);
				(void)snprintf(want + 1 + at, sizeof(want) - 1 - at, "%s%s\"",
				    written[k], in + at + strlen(specials[k]));
				check_escape(in, strlen(in), HR_JSON_REFUSE, want);
			}
}
END_TEST

START_TEST(chunk_border)
{
	struct hr_buf in, out, want;
	size_t i, shift;

	for (shift = 0; shift < 5; shift++) {
		hr_buf_init(&in, 1 << 20);
		hr_buf_init(&out, 1 << 20);
		hr_buf_init(&want, 1 << 20);
		for (i = 0; i < shift; i++)
			hr_buf_addc(&in, 'x');
		for (i = 0; i < 5000; i++)
			hr_buf_adds(&in, "\xF0\x9F\x98\x80");
		hr_buf_addf(&want, "\"%s\"", in.p);
		ck_assert_int_eq(hr_json_put_str(&out, in.p, in.len, HR_JSON_REFUSE), 0);
		ck_assert_str_eq(out.p, want.p);
		hr_buf_done(&in);
		hr_buf_done(&out);
		hr_buf_done(&want);
	}
}
END_TEST

START_TEST(buffer_cap_is_kept)
{
	HR_BUF(b, 100);

	(void)hr_json_put_str(&b, "0123456789012345678901234567890123456789", 40, HR_JSON_REFUSE);
	ck_assert_int_eq(b.fail, HR_E_TOOLARGE);
}
END_TEST

START_TEST(strips_unicode_space)
{
	static const struct {
		const char *in, *out;
	} t[] = {
	    {"  a b \n", "a b"},
	    {"\xC2\xA0\xE3\x80\x80x\xE2\x80\xA9", "x"},
	    {"\x1c\x1f\xC2\x85y\x0b", "y"},
	    {"   ", ""},
	    {"\xE2\x80\x8Bz", "\xE2\x80\x8Bz"},
	    {"\xC3\xA0", "\xC3\xA0"},
	};
	size_t i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		const char *p = t[i].in;
		size_t len = strlen(p);

		hr_utf8_strip(&p, &len);
		ck_assert_uint_eq(len, strlen(t[i].out));
		ck_assert(memcmp(p, t[i].out, len) == 0);
	}
}
END_TEST

START_TEST(a_text_with_a_null_character_is_none)
{
	static const char whole[] = "{\"a\":\"b\\u0000c\",\"d\":\"e\",\"f\":[{\"g\":\"\\u0000\"}]}";
	struct json_object *o = NULL;
	struct hr_json_error err = {0};

	ck_assert_int_eq(hr_json_decode(whole, strlen(whole), &o, &err), 0);
	ck_assert_ptr_null(hr_json_text_at(o, "a"));
	ck_assert_str_eq(hr_json_text_or(o, "a", "none"), "none");
	ck_assert_str_eq(hr_json_text_at(o, "d"), "e");
	ck_assert(hr_json_has_null(o));
	ck_assert(hr_json_has_null(hr_json_at(o, "f")));
	ck_assert(!hr_json_has_null(hr_json_at(o, "d")));
	ck_assert(!hr_json_has_null(NULL));
	json_object_put(o);
}
END_TEST

START_TEST(reasons)
{
	static const struct {
		const char *text;
		size_t len;
		const char *msg;
	} rows[] = {
	    {"{}", 2, "the list x is not JSON"},
	    {"{\"a\":1,}", 8,
		"the list x is not JSON, at character 8: "
		"Expecting property name enclosed in double quotes"},
	    {"\xFE\xFF\x00", 3, "the list x is not JSON: its bytes are not text"},
	};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct json_object *o = NULL;
		struct hr_json_error why = {0};
		struct hr_err err = {0};

		(void)hr_json_decode(rows[i].text, rows[i].len, &o, &why);
		ck_assert_int_eq(
		    hr_json_err(&err, HR_E_PROTO, &why, "the list %s is not JSON", "x"), -1);
		ck_assert_str_eq(err.msg, rows[i].msg);
		ck_assert_int_eq(err.code, HR_E_PROTO);
		json_object_put(o);
	}
}
END_TEST

/* The first entry whose member is this string; members of other types and entries without it are
 * passed over. */
START_TEST(found_by_a_member)
{
	static const char text[] =
	    "[1,{\"n\":7},{\"n\":\"b\"},{\"n\":\"a\",\"v\":1},{\"n\":\"a\",\"v\":2},{\"n\":\"c\"}]";
	HR_PUT struct json_object *list = NULL;

	ck_assert_int_eq(hr_json_decode(text, sizeof(text) - 1, &list, NULL), 0);
	ck_assert_int_eq(hr_json_int_at(hr_json_find(list, "n", "a"), "v"), 1);
	ck_assert_ptr_eq(hr_json_find(list, "n", "b"), hr_json_entry(list, 2));
	ck_assert_ptr_eq(hr_json_find(list, "n", "c"), hr_json_entry(list, 5));
	ck_assert_ptr_null(hr_json_find(list, "n", "d"));
	ck_assert_ptr_null(hr_json_find(list, "m", "a"));
	ck_assert_ptr_null(hr_json_find(hr_json_entry(list, 2), "n", "b")); /* no list */
	ck_assert_ptr_null(hr_json_find(NULL, "n", "a"));
}
END_TEST

/* A buffer that got no memory, or has no room, is empty: nothing precedes its end. */
START_TEST(commas)
{
	HR_BUF(b, 100);
	HR_BUF(full, 0);

	hr_json_put_comma(&b);
	hr_buf_adds(&b, "[");
	hr_json_put_comma(&b);
	hr_buf_adds(&b, "{");
	hr_json_put_named(&b, "a", "x");
	hr_json_put_named(&b, "b", "y");
	hr_buf_adds(&b, "}");
	hr_json_put_comma(&b);
	ck_assert_str_eq(hr_buf_str(&b), "[{\"a\":\"x\",\"b\":\"y\"},");
	hr_buf_adds(&full, "[");
	hr_json_put_comma(&full);
	ck_assert_int_ne(hr_buf_check(&full, NULL), 0);
	ck_assert_str_eq(hr_buf_str(&full), "");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("json");
	TCase *c = tcase_create("json");

	tcase_set_timeout(c, 60);
	tcase_add_test(c, corpus_decode);
	tcase_add_test(c, depth_is_limited);
	tcase_add_test(c, digits_are_limited);
	tcase_add_test(c, deepest_is_parsed);
	tcase_add_test(c, whole_values);
	tcase_add_test(c, members_are_set);
	tcase_add_test(c, long_integers);
	tcase_add_test(c, too_many_values);
	tcase_add_test(c, escapes);
	tcase_add_test(c, bad_bytes);
	tcase_add_test(c, escape_positions);
	tcase_add_test(c, chunk_border);
	tcase_add_test(c, buffer_cap_is_kept);
	tcase_add_test(c, strips_unicode_space);
	tcase_add_test(c, a_text_with_a_null_character_is_none);
	tcase_add_test(c, reasons);
	tcase_add_test(c, found_by_a_member);
	tcase_add_test(c, commas);
	suite_add_tcase(s, c);
	return lines_run(s);
}
