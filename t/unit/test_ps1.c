/* Prompt blocks in their text form. */
#include "config.h"

#include "shell/ps1.h"

#include "lines.h"

#define BEGIN "###PS1JSON###"
#define END "###PS1END###"

START_TEST(prompt_text)
{
	static const char *const keys[] = {
	    "pid", "exit_code", "username", "hostname", "working_dir", "py_interpreter_path"};
	const char *begin = "\n" BEGIN "\n", *end = "\n" END "\n", *p = hr_ps1_prompt;
	char quoted[64];

	ck_assert_int_eq(strncmp(p, begin, strlen(begin)), 0);
	ck_assert_str_eq(p + strlen(p) - strlen(end), end);
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
		(void)snprintf(quoted, sizeof quoted, "\n  \\\"%s\\\": \\\"", keys[i]);
		p = strstr(p, quoted);
		ck_assert_msg(p != NULL, "%s, in order", keys[i]);
	}
	ck_assert_ptr_nonnull(strstr(hr_ps1_prompt, "\\\"username\\\": \\\"\\\\u\\\",\n"));
	ck_assert_ptr_nonnull(
	    strstr(hr_ps1_prompt, "\\\"$(which python 2>/dev/null || echo \\\\\"\\\\\")\\\"\n}\n"));
}
END_TEST

/* blocks: the bodies that must be found, separated by |. */
static const struct {
	const char *text, *bodies;
} finds[] = {
    {"", NULL},
    {"no block", NULL},
    {BEGIN "{}" END, "{}"},
    {"\n" BEGIN "\n{\"a\": 1}\n" END "\n", "{\"a\": 1}"},
    {"before\n" BEGIN "{}" END "behind", "{}"},
    {"x" BEGIN "{}" END, NULL},
    {" " BEGIN "{}" END, NULL},
    {"\r" BEGIN "{}" END, NULL},
    {"#" BEGIN "{}" END, NULL},
    {"#\n" BEGIN "{}" END, "{}"},
    {BEGIN, NULL},
    {BEGIN "{}", NULL},
    {BEGIN END, NULL},
    {BEGIN " \n " END, NULL},
    {BEGIN " \n\n  {\n\n \"a\" :\t1 } \n\n" END, "{\n\n \"a\" :\t1 }"},
    {BEGIN "\xC2\xA0{}\xE3\x80\x80" END, "{}"},
    {BEGIN "{}" END BEGIN "[]" END, "{}"},
    {BEGIN "{}" END "\n" BEGIN "[]" END "\n", "{}|[]"},
    {BEGIN "1" END "\n" BEGIN "\"x\"" END "\n" BEGIN "null" END, "1|\"x\"|null"},
    {BEGIN "garbage" BEGIN "{}" END, NULL},
    {BEGIN "garbage\n" BEGIN "{}" END, NULL},
    {BEGIN "garbage" END "\n" BEGIN "{}" END, "{}"},
    {BEGIN "{}" END END, "{}"},
    {BEGIN "{\"a\": \"" END "\"}" END, NULL},
    {BEGIN "{\"a\": \"\t\"}" END, NULL},
    {BEGIN "{\"a\": \"\\u\"}" END, NULL},
    {BEGIN "{\"a\": \"\\u12G4\"}" END, NULL},
    {BEGIN "{\"a\": \"\\x\"}" END, NULL},
    {BEGIN "{\"a\": \"\\u00e9\"}" END, "{\"a\": \"\\u00e9\"}"},
    {BEGIN "{'a': 1}" END, NULL},
    {BEGIN "{\"a\": 1,}" END, NULL},
    {BEGIN "{\"a\": 01}" END, NULL},
    {BEGIN "{\"a\": 1.}" END, NULL},
    {BEGIN "{\"a\": .5}" END, NULL},
    {BEGIN "{\"a\": +1}" END, NULL},
    {BEGIN "{\"a\": -}" END, NULL},
    {BEGIN "{\"a\"}" END, NULL},
    {BEGIN "{\"a\": tru}" END, NULL},
    {BEGIN "{\"a\": 1} x" END, NULL},
    {BEGIN "{\"a\": 1" END, NULL},
    {BEGIN "[1,[2,{\"b\":[]}],-0.5e+7,1E5,true,false,null]" END,
	"[1,[2,{\"b\":[]}],-0.5e+7,1E5,true,false,null]"},
    {BEGIN "[NaN,Infinity,-Infinity]" END, "[NaN,Infinity,-Infinity]"},
    {BEGIN "[nan]" END, NULL},
};

START_TEST(finding)
{
	const char *text = finds[_i].text, *want = finds[_i].bodies;
	size_t len = strlen(text), from = 0;
	struct hr_ps1_match m;
	char *copy = malloc(len > 0 ? len : 1);

	ck_assert_ptr_nonnull(copy);
	memcpy(copy, text, len);
	while (want && *want != '\0') {
		size_t n = strcspn(want, "|");

		ck_assert_msg(hr_ps1_find(copy, len, from, &m), "%s", text);
		ck_assert_msg(m.body_len == n && memcmp(copy + m.body, want, n) == 0, "%s", text);
		ck_assert_int_eq(memcmp(copy + m.start, BEGIN, strlen(BEGIN)), 0);
		ck_assert_int_eq(memcmp(copy + m.end - strlen(END), END, strlen(END)), 0);
		from = m.end;
		want += n + (want[n] == '|');
	}
	ck_assert_msg(!hr_ps1_find(copy, len, from, &m), "%s", text);
	free(copy);
}
END_TEST

START_TEST(numbers)
{
	static const struct {
		const char *json;
		long long want;
	} t[] = {
	    {"\"0\"", 0},
	    {"0", 0},
	    {"\"-1\"", -1},
	    {"\" 3 \"", 3},
	    {"\"\\u00a07\\n\"", 7},
	    {"\"1.9\"", 1},
	    {"1.9", 1},
	    {"-1.9", -1},
	    {"\"1e2\"", 100},
	    {"1e3", 1000},
	    {"\"1_000\"", 1000},
	    {"\"1_0\"", 10},
	    {"130", 130},
	    {"\"130\"", 130},
	    {"\"\"", -1},
	    {"\"abc\"", -1},
	    {"\"0x10\"", -1},
	    {"\"nan\"", -1},
	    {"NaN", -1},
	    {"null", -1},
	    {"true", -1},
	    {"[1]", -1},
	    {"{}", -1},
	    {"1e300", INT64_MAX},
	    {"-1e300", INT64_MIN},
	    {"123456789012345678901234567890", INT64_MAX},
	};

	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		struct hr_ps1_meta m;
		char body[128];

		(void)snprintf(
		    body, sizeof body, "{\"pid\": %s, \"exit_code\": %s}", t[i].json, t[i].json);
		ck_assert_msg(hr_ps1_interpret(body, strlen(body), &m, NULL) == 0, "%s", body);
		ck_assert_msg(m.pid == t[i].want && m.exit_code == t[i].want, "%s", body);
		hr_ps1_meta_done(&m);
	}
}
END_TEST

static void
check_string(const struct hr_ps1_string *s, const char *want, size_t len)
{
	ck_assert_ptr_nonnull(s->p);
	ck_assert_uint_eq(s->len, len);
	ck_assert_mem_eq(s->p, want, len + 1);
}

START_TEST(whole_block)
{
	const char *text = "out\n" BEGIN "\n"
			   "{\n"
			   "  \"pid\": \"\",\n"
			   "  \"exit_code\": \"7\",\n"
			   "  \"username\": \"root\",\n"
			   "  \"hostname\": \"vm\",\n"
			   "  \"working_dir\": \"/tmp/ws\",\n"
			   "  \"py_interpreter_path\": \"\"\n"
			   "}\n" END "\n";
	struct hr_ps1_match at;
	struct hr_ps1_meta m;

	ck_assert(hr_ps1_find(text, strlen(text), 0, &at));
	ck_assert_uint_eq(at.start, 4);
	ck_assert_int_eq(hr_ps1_interpret(text + at.body, at.body_len, &m, NULL), 0);
	ck_assert_int_eq(m.pid, -1);
	ck_assert_int_eq(m.exit_code, 7);
	check_string(&m.username, "root", 4);
	check_string(&m.hostname, "vm", 2);
	check_string(&m.working_dir, "/tmp/ws", 7);
	check_string(&m.py_interpreter_path, "", 0);
	check_string(&m.prefix, "", 0);
	check_string(&m.suffix, "", 0);
	hr_ps1_meta_done(&m);
}
END_TEST

START_TEST(missing_and_odd_members)
{
	const char *body =
	    "{\"other\": [1, {\"pid\": 5}], \"username\": null, \"hostname\": \"a\","
	    " \"hostname\": \"\\ud83d\\ude00\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\ud800z\","
	    " \"prefix\": \"p\", \"suf\\u0066ix\": \"s\"}";
	struct hr_ps1_meta m;

	ck_assert_int_eq(hr_ps1_interpret(body, strlen(body), &m, NULL), 0);
	ck_assert_int_eq(m.pid, -1);
	ck_assert_int_eq(m.exit_code, -1);
	ck_assert_ptr_null(m.username.p);
	ck_assert_ptr_null(m.working_dir.p);
	check_string(&m.hostname, "\xF0\x9F\x98\x80\"\\/\b\f\n\r\t\0\xED\xA0\x80z", 17);
	check_string(&m.prefix, "p", 1);
	check_string(&m.suffix, "s", 1);
	hr_ps1_meta_done(&m);
	hr_ps1_meta_done(&m);
}
END_TEST

START_TEST(errors)
{
	static const struct {
		const char *body, *text;
	} t[] = {
	    {"[]", "CmdOutputMetadata() argument after ** must be a mapping, not list"},
	    {"5", "'int' object has no attribute 'copy'"},
	    {"5.5", "'float' object has no attribute 'copy'"},
	    {"NaN", "'float' object has no attribute 'copy'"},
	    {"\"x\"", "'str' object has no attribute 'copy'"},
	    {"true", "'bool' object has no attribute 'copy'"},
	    {"null", "'NoneType' object has no attribute 'copy'"},
	    {"{\"pid\": \"inf\"}", "cannot convert float infinity to integer"},
	    {"{\"exit_code\": 1e400}", "cannot convert float infinity to integer"},
	    {"{\"exit_code\": -Infinity}", "cannot convert float infinity to integer"},
	    {"{\"username\": 5}", "username"},
	    {"{\"hostname\": true}", "hostname"},
	    {"{\"working_dir\": []}", "working_dir"},
	    {"{\"prefix\": null}", "prefix"},
	    {"{\"suffix\": {}}", "suffix"},
	};

	for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
		struct hr_ps1_meta m;
		struct hr_err err = {0};

		ck_assert_int_eq(hr_ps1_interpret(t[i].body, strlen(t[i].body), &m, &err), -1);
		ck_assert_int_eq(err.code, HR_E_INVAL);
		ck_assert_msg(strstr(err.msg, t[i].text) != NULL, "%s: %s", t[i].body, err.msg);
	}
}
END_TEST

START_TEST(hostile)
{
	struct hr_ps1_match m;
	struct hr_buf b;

	hr_buf_init(&b, 1u << 22);
	hr_buf_adds(&b, BEGIN);
	for (int i = 0; i < 100000; i++)
		hr_buf_adds(&b, "[");
	hr_buf_adds(&b, END "\n");
	for (int i = 0; i < 100000; i++)
		hr_buf_adds(&b, BEGIN "\n");
	ck_assert(!hr_ps1_find(b.p, b.len, 0, &m));
	hr_buf_adds(&b, "0" END "\n" BEGIN "{}" END);
	ck_assert(hr_ps1_find(b.p, b.len, 0, &m));
	ck_assert_uint_eq(m.end, b.len);
	hr_buf_done(&b);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("ps1");
	TCase *c = tcase_create("ps1");

	tcase_add_test(c, prompt_text);
	tcase_add_loop_test(c, finding, 0, (int)(sizeof finds / sizeof finds[0]));
	tcase_add_test(c, numbers);
	tcase_add_test(c, whole_block);
	tcase_add_test(c, missing_and_odd_members);
	tcase_add_test(c, errors);
	tcase_add_test(c, hostile);
	suite_add_tcase(s, c);
	return lines_run(s);
}
