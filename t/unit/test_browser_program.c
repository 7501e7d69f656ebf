/* Program texts: which calls are found in them, and what they raise, line by line as recorded. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "plugins/browser/program/calls.h"
#include "plugins/browser/program/program.h"
#include "proto/json.h"

#include "found.h"
#include "lines.h"

static struct hr_buf why, text;

static void
setup(void)
{
	hr_buf_init(&why, 1 << 24);
	hr_buf_init(&text, 1 << 24);
}

static void
teardown(void)
{
	hr_buf_done(&why);
	hr_buf_done(&text);
}

/* The value as the recording tags it. */
static struct json_object *
tagged(const struct br_value *v)
{
	static const char *const names[] = {
	    [BR_V_INT] = "int",
	    [BR_V_FLOAT] = "float",
	    [BR_V_LIST] = "list",
	    [BR_V_TUPLE] = "tuple",
	    [BR_V_DICT] = "dict",
	};
	struct json_object *o, *list, *pair;
	size_t i;

	if (v->kind == BR_V_NONE)
		return NULL;
	if (v->kind == BR_V_TRUE || v->kind == BR_V_FALSE)
		return json_object_new_boolean(v->kind == BR_V_TRUE);
	if (v->kind == BR_V_STR)
		return json_object_new_string_len(v->text, (int)v->len);
	o = json_object_new_object();
	list = json_object_new_array();
	if (v->kind == BR_V_INT || v->kind == BR_V_FLOAT) {
		json_object_put(list);
		hr_buf_reset(&text);
		br_value_repr(&text, v);
		list = json_object_new_string(hr_buf_str(&text));
	} else if (v->kind == BR_V_DICT) {
		for (i = 0; i < v->n; i += 2) {
			pair = json_object_new_array();
			json_object_array_add(pair, tagged(&v->items[i]));
			json_object_array_add(pair, tagged(&v->items[i + 1]));
			json_object_array_add(list, pair);
		}
	} else {
		for (i = 0; i < v->n; i++)
			json_object_array_add(list, tagged(&v->items[i]));
	}
	json_object_object_add(o, names[v->kind], list);
	return o;
}

static struct json_object *
described(const struct br_found *f)
{
	struct json_object *o = json_object_new_object(), *args = json_object_new_array(),
			   *kwargs = json_object_new_array(), *pair;
	size_t i;

	for (i = 0; i < f->n; i++) {
		if (f->args[i].name == NULL) {
			json_object_array_add(args, tagged(&f->args[i].value));
			continue;
		}
		pair = json_object_new_array();
		json_object_array_add(pair, json_object_new_string(f->args[i].name));
		json_object_array_add(pair, tagged(&f->args[i].value));
		json_object_array_add(kwargs, pair);
	}
	hr_buf_reset(&text);
	found_python(&text, f);
	json_object_object_add(o, "name", json_object_new_string(f->name));
	json_object_object_add(o, "args", args);
	json_object_object_add(o, "kwargs", kwargs);
	json_object_object_add(o, "python", json_object_new_string_len(text.p, (int)text.len));
	return o;
}

static void
same(const char *what, struct json_object *line, struct json_object *have)
{
	struct json_object *want = hr_json_at(line, what);

	ck_assert_msg(json_object_equal(want, have), "%s of %s:\nwant %s\nhave %s", what,
	    hr_json_text_at(line, "text"), json_object_to_json_string(want),
	    json_object_to_json_string(have));
	json_object_put(have);
}

static struct json_object *
reason(void)
{
	return why.len > 0 ? json_object_new_string_len(why.p, (int)why.len) : NULL;
}

/* What running it raises where all elements and files are there, and one tab. */
static void
run_all(struct br_program *p)
{
	struct br_call c;
	size_t i;

	for (i = 0; i < br_program_calls(p); i++) {
		hr_buf_reset(&why);
		if (br_program_bind(p, i, &c, &why) < 0)
			return;
		if (c.to_refused != NULL)
			hr_buf_adds(&why, c.to_refused);
		else if (c.fn == BR_TAB_FOCUS && c.index != 0 && c.index != -1)
			hr_buf_adds(&why, "IndexError: list index out of range");
		if (why.len > 0)
			return;
	}
}

static void
play(struct json_object *line)
{
	struct json_object *list = NULL;
	struct br_program *p;
	struct br_calls c;
	const char *s;
	size_t len, i;
	int done;

	s = hr_json_str(hr_json_at(line, "text"), &len);
	hr_buf_reset(&why);
	done = br_calls_find(&c, s, len, &why);
	ck_assert_int_ge(done, 0);
	if (done == 0)
		list = json_object_new_array();
	for (i = 0; i < c.n; i++)
		json_object_array_add(list, described(&c.v[i]));
	same("calls", line, list);
	if (done == 0)
		(void)br_calls_check(&c, &why);
	same("error", line, reason());
	br_calls_done(&c);
	hr_buf_reset(&why);
	p = br_program_parse(s, len, &why);
	if (hr_json_at(line, "error") != NULL) {
		ck_assert_ptr_null(p);
		same("error", line, reason());
		return;
	}
	if (p != NULL)
		run_all(p);
	same("bind_error", line, reason());
	br_program_free(p);
}

static void
play_file(const char *name, int atleast)
{
	FILE *f = lines_open(name);
	struct json_object *v;
	struct hr_json_error e;
	HR_FREE char *line = NULL;
	size_t cap = 0;
	int n = 0;

	for (; lines_next(f, &line, &cap); n++) {
		ck_assert_int_eq(hr_json_decode(line, strlen(line), &v, &e), 0);
		play(v);
		json_object_put(v);
	}
	(void)fclose(f);
	ck_assert_int_ge(n, atleast);
}

START_TEST(recorded)
{
	play_file("browser/browse_program.jsonl", 232);
}
END_TEST

START_TEST(derived)
{
	play_file("browser/program_more.jsonl", 300);
}
END_TEST

static struct br_program *program;

static struct br_call
bound(const char *s)
{
	struct br_call c;

	br_program_free(program);
	hr_buf_reset(&why);
	program = br_program_parse(s, strlen(s), &why);
	ck_assert_msg(program != NULL, "%s: %s", s, hr_buf_str(&why));
	ck_assert_msg(br_program_bind(program, 0, &c, &why) == 0, "%s: %s", s, hr_buf_str(&why));
	return c;
}

static void
span_is(struct hr_span s, const char *want)
{
	ck_assert_uint_eq(s.len, strlen(want));
	ck_assert_mem_eq(s.p, want, s.len);
}

START_TEST(arguments)
{
	struct br_call c = bound("noop()");

	ck_assert(c.fn == BR_NOOP && c.x == 1000);
	c = bound("scroll(0, delta_y=-100.5)");
	ck_assert(c.fn == BR_SCROLL && c.x == 0 && c.y == -100.5);
	c = bound("click('a1', modifiers=('Shift', 'ControlOrMeta'), button='middle')");
	ck_assert(c.button == BR_MIDDLE && c.modifiers == (BR_SHIFT | BR_CONTROL));
	span_is(c.bid, "a1");
	c = bound("click('5', None, None)");
	ck_assert(c.button == BR_LEFT && c.modifiers == 0 && c.refused == NULL);
	c = bound("fill('5', 'a\\0b')");
	ck_assert(c.text.len == 3 && memcmp(c.text.p, "a\0b", 3) == 0);
	c = bound("select_option('5', 'x')");
	ck_assert(c.nlist == 1);
	span_is(c.list[0], "x");
	c = bound("select_option('5', {'x': 1, 'y': 2})");
	ck_assert(c.nlist == 2 && c.refused == NULL);
	span_is(c.list[1], "y");
	c = bound("upload_file('5', [])");
	ck_assert(c.nlist == 0 && c.refused == NULL);
	c = bound("drag_and_drop(to_bid='2', from_bid='1')");
	span_is(c.bid, "1");
	span_is(c.to_bid, "2");
	c = bound("tab_focus(-3)");
	ck_assert_int_eq(c.index, -3);
	br_program_free(program);
	program = NULL;
}
END_TEST

static void
raises(const char *s, const char *want)
{
	hr_buf_reset(&why);
	ck_assert_ptr_null(br_program_parse(s, strlen(s), &why));
	ck_assert_str_eq(hr_buf_str(&why), want);
}

#define UNICODE_ERROR                                                                              \
	"SyntaxError: (unicode error) 'unicodeescape' codec can't decode bytes in position "

START_TEST(characters_by_name)
{
#ifdef HAVE_ICU
	span_is(bound("fill('5', '<\\N{BULLET}\\N{em dash}>')").text, "<\xe2\x80\xa2\xe2\x80\x94>");
	span_is(bound("fill('5', '\\N{GRINNING FACE}')").text, "\xf0\x9f\x98\x80");
	span_is(bound("fill('5', '\\N{HANGUL SYLLABLE GA}\\N{CJK UNIFIED IDEOGRAPH-4E00}')").text,
	    "\xea\xb0\x80\xe4\xb8\x80");
	/* a name with a mistake, and the one that mends it */
	span_is(
	    bound("fill('5', '\\N{PRESENTATION FORM FOR VERTICAL RIGHT WHITE LENTICULAR BRAKCET}"
		  "\\N{PRESENTATION FORM FOR VERTICAL RIGHT WHITE LENTICULAR BRACKET}')")
		.text,
	    "\xef\xb8\x98\xef\xb8\x98");
	/* where what comes behind is counted from */
	raises("click('\\N{BULLET}\\x4')",
	    UNICODE_ERROR "10-12: truncated \\xXX escape (<unknown>, line 1)");
	raises("click('a\\N{em dash}\xc3\xa9\\N{nope}')",
	    UNICODE_ERROR "22-29: unknown Unicode character name (<unknown>, line 1)");
	raises("click('\\N{LATIN SMALL LETTER E WITH ACUTE}b\\N{}')",
	    UNICODE_ERROR "36-38: malformed \\N character escape (<unknown>, line 1)");
	br_program_free(program);
	program = NULL;
#endif
	raises("click('\\N{BULLET')",
	    UNICODE_ERROR "0-8: malformed \\N character escape (<unknown>, line 1)");
	raises("click('\\N{ BULLET}')",
	    UNICODE_ERROR "0-10: unknown Unicode character name (<unknown>, line 1)");
	raises("click('\\N{\\x41}')",
	    UNICODE_ERROR "0-7: unknown Unicode character name (<unknown>, line 1)");
	raises("click('\\N{\xc3\xa9}')",
	    UNICODE_ERROR "0-13: unknown Unicode character name (<unknown>, line 1)");
}
END_TEST

START_TEST(refusals)
{
	static const char *const cases[][2] = {
	    {"fill('8', 5)", "Error: Locator.fill: value: expected string, got number"},
	    {"fill('8', True)", "Error: Locator.fill: value: expected string, got boolean"},
	    {"fill('8', ['l'])", "Error: Locator.fill: value: expected string, got object"},
	    {"fill('8', None)",
		"TypeError: Frame.fill() missing 1 required positional argument: 'value'"},
	    {"press('8', None)",
		"TypeError: Frame.press() missing 1 required positional argument: 'key'"},
	    {"press('8', 1)", "Error: Locator.press: key: expected string, got number"},
	    {"click('5', button='wrong')",
		"Error: Locator.click: button: expected one of (left|right|middle)"},
	    {"dblclick('5', 5)",
		"Error: Locator.click: button: expected one of (left|right|middle)"},
	    {"click('5', modifiers=['Alt', 'Hyper'])",
		"Error: Locator.click: modifiers[1]: expected one of "
		"(Alt|Control|ControlOrMeta|Meta|Shift)"},
	    {"click('5', 'wrong', modifiers='Shift')",
		"Error: Locator.click: modifiers: expected array, got string"},
	    {"click('5', modifiers={})",
		"Error: Locator.click: modifiers: expected array, got object"},
	    {"noop('a')", "Error: Page.wait_for_timeout: wait_timeout: expected float, got string"},
	    {"noop(None)",
		"Error: Page.wait_for_timeout: wait_timeout: expected float, got undefined"},
	    {"goto(5)", "Error: Page.goto: url: expected string, got number"},
	    {"goto(None)", "TypeError: Frame.goto() missing 1 required positional argument: 'url'"},
	    {"scroll('a', 'b')", "Error: Mouse.wheel: delta_x: expected float, got string"},
	    {"scroll(1, {})", "Error: Mouse.wheel: delta_y: expected float, got object"},
	    {"select_option('5', 5)", "TypeError: 'int' object is not iterable"},
	    {"select_option('5', ['a', 5])",
		"Error: Locator.select_option: options[1].value_or_label: expected string, got "
		"number"},
	    {"upload_file('5', ['a', 5])",
		"Error: FileChooser.set_files: File paths cannot be mixed with buffers"},
	    {"upload_file('5', 5)", "AttributeError: 'int' object has no attribute 'get'"},
	};
	struct br_call c;
	size_t i;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		c = bound(cases[i][0]);
		ck_assert_msg(c.refused != NULL, "%s", cases[i][0]);
		ck_assert_str_eq(c.refused, cases[i][1]);
	}
	c = bound("drag_and_drop('1', 5)");
	ck_assert_str_eq(c.to_refused, "ValueError: expected a string, got 5");
	br_program_free(program);
	program = NULL;
}
END_TEST

/* As deep as Python's own stack allows, and not through ours. */
START_TEST(deep)
{
	struct br_calls c;
	size_t i;

	hr_buf_adds(&text, "noop(");
	for (i = 0; i < 1000000; i++)
		hr_buf_addc(&text, '[');
	ck_assert_int_eq(br_calls_find(&c, text.p, text.len, &why), 1);
	ck_assert_str_eq(why.p, "RecursionError: maximum recursion depth exceeded");
}
END_TEST

/* Letters without a call behind them are read once. */
START_TEST(long_names)
{
	struct br_calls c;
	size_t i;

	for (i = 0; i < 1000000; i++)
		hr_buf_adds(&text, i % 1000 == 0 ? "\xC3\xA9" : "b");
	hr_buf_adds(&text, "1 no(\xC2\xB7"
			   "2p(1)a5(3)");
	ck_assert_int_eq(br_calls_find(&c, text.p, text.len, &why), 0);
	ck_assert_uint_eq(c.n, 2);
	ck_assert_str_eq(c.v[0].name, "p");
	ck_assert_str_eq(c.v[1].name, "a5");
	br_calls_done(&c);
}
END_TEST

/* The last value of equal keys counts, at the first place; a million of keys takes no hours. */
START_TEST(many_keys)
{
	const struct br_value *dict;
	struct br_calls c;
	size_t i;
	HR_BUF(repr, 4096);

	hr_buf_adds(&text, "f({'b': 1, '': 2, 'a': 3, 'b': [4], '': 5, 'c': 6, 'b': {'x': 7}})g({");
	for (i = 0; i < 1000000; i++)
		hr_buf_addf(&text, "'%zu':1,", i % 999999);
	hr_buf_adds(&text, "})");
	ck_assert_int_eq(br_calls_find(&c, text.p, text.len, &why), 0);
	ck_assert_uint_eq(c.n, 2);
	br_value_repr(&repr, &c.v[0].args[0].value);
	ck_assert_str_eq(hr_buf_str(&repr), "{'b': {'x': 7}, '': 5, 'a': 3, 'c': 6}");
	dict = &c.v[1].args[0].value;
	ck_assert_uint_eq(dict->n, 2 * 999999);
	ck_assert_str_eq(dict->items[2 * 999998].text, "999998");
	br_calls_done(&c);
}
END_TEST

START_TEST(many_arguments)
{
	struct br_program *p;
	size_t i;

	hr_buf_adds(&text, "goto(1, a=1");
	for (i = 0; i < 60000; i++)
		hr_buf_addf(&text, ",a%c%c%c%c=1", 'a' + (int)(i / 17576),
		    'a' + (int)(i / 676 % 26), 'a' + (int)(i / 26 % 26), 'a' + (int)(i % 26));
	hr_buf_adds(&text, ",aaaac=1,aaaab=1,__debug__=1)");
	p = br_program_parse(text.p, text.len, &why);
	ck_assert_ptr_null(p);
	ck_assert_str_eq(
	    hr_buf_str(&why), "SyntaxError: keyword argument repeated: aaaab (<string>, line 657)");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("browser_program");
	TCase *t = tcase_create("program");

	tcase_add_checked_fixture(t, setup, teardown);
	tcase_add_test(t, recorded);
	tcase_add_test(t, derived);
	tcase_add_test(t, arguments);
	tcase_add_test(t, characters_by_name);
	tcase_add_test(t, refusals);
	tcase_add_test(t, deep);
	tcase_add_test(t, long_names);
	tcase_add_test(t, many_keys);
	tcase_add_test(t, many_arguments);
	suite_add_tcase(s, t);
	return lines_run(s);
}
