/* The code interpreter: lines from a kernel's messages, bodies of requests, kernel specifications.
 */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/path.h"
#include "plugins/jupyter/ask.h"
#include "plugins/jupyter/line.h"
#include "plugins/jupyter/spec.h"
#include "proto/json.h"

#define PYTHON "/usr/bin/python3"

static struct json_object *
parse(const char *text)
{
	struct json_object *v = NULL;

	ck_assert_int_eq(hr_json_decode(text, strlen(text), &v, NULL), 0);
	return v;
}

static void
becomes(const char *type, const char *content, enum hr_line_kind kind, const char *want)
{
	HR_CLEAN(hr_wire_message_done)
	struct hr_wire_message m = {parse("{\"date\": \"NOW\"}"), NULL, parse(content), type, "me"};
	HR_BUF(b, 1 << 20);

	ck_assert_int_eq(hr_line_put(&b, &m), kind);
	ck_assert_str_eq(hr_buf_str(&b), want);
}

START_TEST(output)
{
	becomes("stream", "{\"name\": \"stdout\", \"text\": \"a\\n\"}", HR_LINE_OUTPUT,
	    "{\"type\":\"stdout\",\"text\":\"a\\n\",\"timestamp\":\"NOW\"}\n");
	becomes("stream", "{\"name\": \"stderr\", \"text\": 1}", HR_LINE_OUTPUT,
	    "{\"type\":\"stderr\",\"text\":\"\",\"timestamp\":\"NOW\"}\n");
	becomes("stream", "{\"name\": \"other\", \"text\": \"a\"}", HR_LINE_NONE, "");
	becomes("execute_input", "{\"code\": \"x\", \"execution_count\": 7}", HR_LINE_COUNT,
	    "{\"type\":\"number_of_executions\",\"execution_count\":7}\n");
	becomes("comm_open", "{}", HR_LINE_NONE, "");
}
END_TEST

START_TEST(results)
{
	becomes("execute_result",
	    "{\"data\": {\"text/plain\": \"'it'\", \"text/html\": \"<b>\", \"application/json\": "
	    "[1, null],"
	    " \"image/png\": \"QUJD\", \"e2b/data\": {\"a\": [1]}, \"e2b/chart\": {}}}",
	    HR_LINE_OUTPUT,
	    "{\"type\":\"result\",\"is_main_result\":true,\"text\":\"it\",\"html\":\"<b>\","
	    "\"json\":[1,null],"
	    "\"png\":\"QUJD\",\"data\":{\"a\":[1]},\"chart\":{},\"extra\":{}}\n");
	becomes("display_data",
	    "{\"data\": {\"text/plain\": \"'\", \"a/b\": {\"c\": \"d\"}, \"text/html\": 1}}",
	    HR_LINE_OUTPUT,
	    "{\"type\":\"result\",\"is_main_result\":false,\"text\":\"'\","
	    "\"extra\":{\"a/b\":{\"c\":\"d\"},\"text/html\":1}}\n");
	becomes("display_data", "{\"data\": []}", HR_LINE_OUTPUT,
	    "{\"type\":\"result\",\"is_main_result\":false,\"extra\":{}}\n");
}
END_TEST

START_TEST(errors)
{
	becomes("error",
	    "{\"ename\": \"E\", \"evalue\": \"v\", \"traceback\": [\"\\u001b[31ma\\u001b[0m\", 1, "
	    "\"b\"]}",
	    HR_LINE_ERROR,
	    "{\"type\":\"error\",\"name\":\"E\",\"value\":\"v\",\"traceback\":\"ab\"}\n");
	becomes("error", "{\"ename\": \"IndentationError\"}", HR_LINE_SYNTAX,
	    "{\"type\":\"error\",\"name\":\"IndentationError\",\"value\":\"\",\"traceback\":\"\"}"
	    "\n");
}
END_TEST

START_TEST(a_line_that_is_too_long_is_replaced)
{
	HR_CLEAN(hr_wire_message_done)
	struct hr_wire_message m = {NULL, NULL,
	    parse("{\"name\": \"stdout\", \"text\": \"0123456789012345678901234567890123456789"
		  "0123456789012345678901234567890123456789012345678901234567890123456789\"}"),
	    "stream", "me"};
	HR_BUF(b, 130);

	ck_assert_int_eq(hr_line_put(&b, &m), HR_LINE_OUTPUT);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&b), "was not kept"));
	ck_assert_str_eq(b.p + b.len - 2, "}\n");
}
END_TEST

static void
refused(const char *text, int status, const char *want)
{
	struct json_object *body = NULL;
	HR_BUF(why, 1 << 20);

	ck_assert_int_eq(hr_ask_read(hr_span_of(text), hr_ask_execute, &body, &why), status);
	ck_assert_str_eq(hr_buf_str(&why), want);
	json_object_put(body);
}

START_TEST(bodies)
{
	refused(
	    "{\"code\": \"1\", \"context_id\": null, \"env_vars\": {\"A\": \"b\"}, \"other\": 1}",
	    0, "");
	refused("{", 422,
	    "{\"detail\":[{\"type\":\"json_invalid\",\"loc\":[\"body\",1],\"msg\":\"JSON decode "
	    "error\","
	    "\"input\":{},\"ctx\":{\"error\":\"Expecting property name enclosed in double "
	    "quotes\"}}]}");
	refused("{}", 422,
	    "{\"detail\":[{\"type\":\"missing\",\"loc\":[\"body\",\"code\"],\"msg\":\"Field "
	    "required\","
	    "\"input\":{}}]}");
	refused("", 422,
	    "{\"detail\":[{\"type\":\"missing\",\"loc\":[\"body\"],\"msg\":\"Field "
	    "required\",\"input\":null}]}");
	refused("[1]", 422,
	    "{\"detail\":[{\"type\":\"model_attributes_type\",\"loc\":[\"body\"],\"msg\":\"Input "
	    "should be a valid "
	    "dictionary or object to extract fields from\",\"input\":[1]}]}");
	refused("{\"code\": 1, \"language\": [], \"env_vars\": {\"A\": null}}", 422,
	    "{\"detail\":[{\"type\":\"string_type\",\"loc\":[\"body\",\"code\"],\"msg\":\"Input "
	    "should be a valid "
	    "string\",\"input\":1},{\"type\":\"string_type\",\"loc\":[\"body\",\"language\"],"
	    "\"msg\":\"Input should be "
	    "a valid "
	    "string\",\"input\":[]},{\"type\":\"string_type\",\"loc\":[\"body\",\"env_vars\",\"A\"]"
	    ",\"msg\":"
	    "\"Input should be a valid string\",\"input\":null}]}");
	refused("{\"code\": null, \"env_vars\": 1}", 422,
	    "{\"detail\":[{\"type\":\"string_type\",\"loc\":[\"body\",\"code\"],\"msg\":\"Input "
	    "should be a valid "
	    "string\",\"input\":null},{\"type\":\"dict_type\",\"loc\":[\"body\",\"env_vars\"],"
	    "\"msg\":\"Input should "
	    "be a valid dictionary\",\"input\":1}]}");
	refused("\xff\xff\xff\xff", 400, "{\"detail\":\"There was an error parsing the body\"}");
}
END_TEST

/* Returns the status of a body with n variables. */
static int
status_of_variables(int n)
{
	struct json_object *body = NULL;
	HR_BUF(text, 1 << 20);
	HR_BUF(why, 1 << 21);
	int i, status;

	hr_buf_adds(&text, "{\"code\":\"1\",\"env_vars\":{\"A\":\"\"");
	for (i = 1; i < n; i++)
		hr_buf_addf(&text, ",\"A%d\":\"\"", i);
	hr_buf_adds(&text, "}}");
	status = hr_ask_read(hr_span_of_buf(&text), hr_ask_execute, &body, &why);
	ck_assert_int_eq(text.fail, HR_OK);
	ck_assert_int_eq(why.fail, HR_OK);
	ck_assert(status == 0 ||
		  strstr(hr_buf_str(&why), "Dictionary should have at most 16384 items") != NULL);
	json_object_put(body);
	return status;
}

START_TEST(variables_are_bounded)
{
	ck_assert_int_eq(status_of_variables(16384), 0);
	ck_assert_int_eq(status_of_variables(16385), 422);
}
END_TEST

START_TEST(languages)
{
	static const char *const cases[][2] = {{"\" Python \"", "python"}, {"\"\"", "python"},
	    {"\"JS\"", "javascript"}, {"\"ts\"", "typescript"}, {"\"cobol\\n\"", "cobol"}};
	HR_FREE char *none = hr_ask_language(NULL);
	size_t i;

	ck_assert_str_eq(none, "python");
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		HR_PUT struct json_object *v = parse(cases[i][0]);
		HR_FREE char *name = hr_ask_language(v);

		ck_assert_str_eq(name, cases[i][1]);
	}
}
END_TEST

static void
write_spec(const char *top, const char *name, const char *text)
{
	char path[200];

	(void)snprintf(path, sizeof(path), "%s/kernels/%s", top, name);
	ck_assert_int_eq(hr_path_mkdirs(path, 0700, NULL, NULL), 0);
	(void)snprintf(path, sizeof(path), "%s/kernels/%s/kernel.json", top, name);
	ck_assert_int_eq(hr_path_write(path, text, strlen(text), 0600, NULL), 0);
}

static void
finds(const char *language, int want, const char *first, const char *last, bool asks)
{
	HR_CLEAN(hr_spec_done) struct hr_spec spec;
	HR_CLEAN(hr_strv_done) struct hr_strv argv = {0};
	struct hr_err err = {0};
	int r = hr_spec_find(&spec, language, PYTHON, &err);

	ck_assert_int_eq(r < 0 ? (int)err.code : 0, want);
	if (r < 0)
		return;
	hr_spec_argv(&argv, &spec, "/f.json");
	ck_assert_str_eq(argv.v[0], first);
	ck_assert_str_eq(argv.v[argv.n - 1], last);
	ck_assert(spec.asks_interrupt == asks);
}

START_TEST(specifications)
{
	char top[] = "/tmp/handrail-spec-XXXXXX", fifo[100];

	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_int_eq(setenv("JUPYTER_PATH", top, 1), 0);
	write_spec(top, "tango",
	    "{\"argv\": [\"{resource_dir}/run\", \"--f={connection_file}\"],"
	    " \"language\": \"Tangoscript\", \"interrupt_mode\": \"message\"}");
	write_spec(top, "broken", "{\"argv\": 1}");
	finds("python", 0, PYTHON, "/f.json", false);
	(void)snprintf(fifo, sizeof(fifo), "%s/kernels/fifo", top);
	ck_assert_int_eq(hr_path_mkdirs(fifo, 0700, NULL, NULL), 0);
	(void)snprintf(fifo, sizeof(fifo), "%s/kernels/fifo/kernel.json", top);
	ck_assert_int_eq(mkfifo(fifo, 0600), 0); /* a read would wait for a writer */
	finds("fifo", HR_E_NOTFOUND, NULL, NULL, false);
	finds("nothing-of-that-name", HR_E_NOTFOUND, NULL, NULL, false);
	finds("../tango", HR_E_NOTFOUND, NULL, NULL, false);
	finds("broken", HR_E_INVAL, NULL, NULL, false);
	{
		char run[64];

		(void)snprintf(run, sizeof(run), "%s/kernels/tango/run", top);
		finds("tango", 0, run, "--f=/f.json", true);
		finds("tangoscript", 0, run, "--f=/f.json", true);
	}
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}
END_TEST

START_TEST(variables)
{
	HR_PUT struct json_object *vars = parse("{\"A'\": \"b\\\"\\n\", \"HOME\": \"x\"}");
	char home[] = "HOME=/h", other[] = "HOMES=/o";
	char *const envp[] = {other, home, NULL};
	HR_BUF(b, 1 << 10);

	hr_spec_set(&b, "python", vars);
	ck_assert_str_eq(hr_buf_str(&b), "__import__('os').environ[\"A'\"] = \"b\\\"\\n\"\n"
					 "__import__('os').environ[\"HOME\"] = \"x\"\n");
	hr_buf_reset(&b);
	hr_spec_take_back(&b, "bash", vars, envp);
	ck_assert_str_eq(hr_buf_str(&b), "unset 'A'\\'''\nexport 'HOME'='/h'\n");
	hr_buf_reset(&b);
	hr_spec_set(&b, "cobol", vars);
	ck_assert_uint_eq(b.len, 0);
}
END_TEST

int
main(void)
{
	TCase *t = tcase_create("code");
	Suite *s = suite_create("jupyter_code");
	SRunner *r;
	int failed;

	tcase_add_test(t, output);
	tcase_add_test(t, results);
	tcase_add_test(t, errors);
	tcase_add_test(t, a_line_that_is_too_long_is_replaced);
	tcase_add_test(t, bodies);
	tcase_add_test(t, variables_are_bounded);
	tcase_add_test(t, languages);
	tcase_add_test(t, specifications);
	tcase_add_test(t, variables);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
