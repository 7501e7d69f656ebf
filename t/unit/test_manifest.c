/* Manifests of plugins: what is taken, what is refused and in which words. */
#include "config.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/children/manifest.h"

static struct hr_manifest m;
static struct hr_err err;

static int
parse(const char *text)
{
	err = (struct hr_err){0};
	return hr_manifest_parse(&m, "/p/x", text, strlen(text), &err);
}

START_TEST(a_whole_one)
{
	ck_assert_int_eq(
	    parse("{\"api\": 1, \"name\": \"x\", \"version\": \"2\", \"color\": [],"
		  " \"exec\": [\"${plugin_dir}/run\", \"a b\"], \"needs\": [\"python3\"],"
		  " \"requires\": [\"a\"], \"after\": [\"b\", \"c\"], \"run_as\": \"server\","
		  " \"start\": \"at-start\", \"on_failure\": \"disable\", \"ready_timeout\": 5,"
		  " \"env\": {\"A\": \"1\", \"B_2\": \"\"}, \"provides\": {\"C\": \"=\"},"
		  " \"pass_env\": [\"TERM\", \"OH_*\"], \"openhands_v1\": true, \"direct\": true, "
		  "\"actions\": "
		  "[\"do-it\"], \"implied\": true,"
		  " \"http\": [{\"prefix\": \"/x/\"}, {\"prefix\": \"/y.z\", \"auth\": \"none\"},"
		  " {\"body_max\": 9, \"prefix\": \"/b\", \"auth\": \"bearer\", \"stream_body\": "
		  "true}]}"),
	    0);
	ck_assert_str_eq(m.name, "x");
	ck_assert_str_eq(m.version, "2");
	ck_assert_uint_eq(m.exec.n, 2);
	ck_assert_str_eq(m.exec.v[1], "a b");
	ck_assert_ptr_null(m.exec.v[2]);
	ck_assert_str_eq(m.needs.v[0], "python3");
	ck_assert_str_eq(m.requires.v[0], "a");
	ck_assert_str_eq(m.after.v[1], "c");
	ck_assert(m.as_server && m.disables && m.implied && !m.token);
	ck_assert_int_eq(m.start, HR_MANIFEST_AT_START);
	ck_assert_int_eq(m.ready_timeout_s, 5);
	ck_assert_str_eq(m.env.v[1], "B_2=");
	ck_assert_str_eq(m.provides.v[0], "C==");
	ck_assert_str_eq(m.pass_env.v[0], "TERM");
	ck_assert_str_eq(m.pass_env.v[1], "OH_*");
	ck_assert(m.v1 && m.direct);
	ck_assert_str_eq(m.actions.v[0], "do-it");
	ck_assert_uint_eq(m.nhttp, 3);
	ck_assert_str_eq(m.http[0].prefix, "/x/");
	ck_assert_int_eq(m.http[0].auth, HR_MANIFEST_SESSION);
	ck_assert_int_eq(m.http[1].auth, HR_MANIFEST_NONE);
	ck_assert_int_eq(m.http[2].auth, HR_MANIFEST_BEARER);
	ck_assert_int_eq(m.http[1].body_max, 0);
	ck_assert_int_eq(m.http[2].body_max, 9);
	ck_assert(m.http[2].stream_body && !m.http[1].stream_body);
	hr_manifest_done(&m);
}
END_TEST

START_TEST(defaults)
{
	ck_assert_int_eq(parse("{\"api\": 1, \"name\": \"x\"}"), 0);
	ck_assert(!m.as_server && !m.disables && !m.implied && !m.token && !m.v1 && !m.direct);
	ck_assert_int_eq(m.start, HR_MANIFEST_FIRST_USE);
	ck_assert_int_eq(m.ready_timeout_s, 60);
	ck_assert_uint_eq(m.exec.n + m.nhttp + m.actions.n, 0);
	ck_assert_ptr_null(m.unavailable);
	hr_manifest_done(&m);
}
END_TEST

#define X "{\"api\": 1, \"name\": \"x\", "

static const struct {
	const char *text, *message;
} bad[] = {
    {"", "unexpected end of data"},
    {"[]", "must be a JSON object"},
    {"{\"name\": \"x\"}", "api: must be 1, the only version of this handraild"},
    {"{\"api\": \"1\", \"name\": \"x\"}", "api: must be 1, the only version of this handraild"},
    {"{\"api\": 1}", "name: is missing or not valid"},
    {"{\"api\": 1, \"name\": \"y\"}", "name: must be the directory's name, not \"y\""},
    {X "\"name\": \"a/b\"}", "name: is missing or not valid"},
    {X "\"exec\": \"run\"}", "exec: must be a list"},
    {X "\"exec\": [1]}", "exec: must be a string"},
    {X "\"exec\": [\"a\\u0000b\"]}", "exec: must not contain a NUL byte"},
    {X "\"exec\": [\"${home}\"]}", "exec: unknown variable in \"${home}\""},
    {X "\"exec\": [\"${home\"]}", "exec: unknown variable in \"${home\""},
    {X "\"actions\": [\"a\"]}", "exec: is missing: actions and http need a program"},
    {X "\"actions\": [\"../x\"]}", "actions: \"../x\" is not a valid name"},
    {X "\"actions\": [\"\"]}", "actions: \"\" is not a valid name"},
    {X "\"pass_env\": [\"*\"]}", "pass_env: \"*\" is not a valid name"},
    {X "\"pass_env\": [\"A*B\"]}", "pass_env: \"A*B\" is not a valid name"},
    {X "\"openhands_v1\": 1}", "openhands_v1: must be true or false"},
    {X "\"env\": []}", "env: must be an object"},
    {X "\"env\": {\"A=B\": \"1\"}}", "env: \"A=B\" is not the name of a variable"},
    {X "\"env\": {\"A\": 1}}", "env: must be a string"},
    {X "\"run_as\": \"me\"}", "run_as: must be one of user, server, not \"me\""},
    {X "\"ready_timeout\": 0}", "ready_timeout: must be an integer from 1 to 86400"},
    {X "\"ready_timeout\": 1.5}", "ready_timeout: must be an integer from 1 to 86400"},
    {X "\"implied\": 1}", "implied: must be true or false"},
    {X "\"http\": {}}", "http: must be a list of at most 64"},
    {X "\"http\": [{}]}", "http: entry 1 must be an object with a prefix"},
    {X "\"http\": [{\"prefix\": \"x\"}]}", "prefix: \"x\" is not a plain path"},
    {X "\"http\": [{\"prefix\": \"/\"}]}", "prefix: \"/\" is not a plain path"},
    {X "\"http\": [{\"prefix\": \"/-/x\"}]}", "prefix: \"/-/x\" is not a plain path"},
    {X "\"http\": [{\"prefix\": \"/a/../b\"}]}", "prefix: \"/a/../b\" is not a plain path"},
    {X "\"http\": [{\"prefix\": \"/a;b\"}]}", "prefix: \"/a;b\" is not a plain path"},
    {X "\"http\": [{\"prefix\": \"/a {\"}]}", "prefix: \"/a {\" is not a plain path"},
    {X "\"http\": [{\"prefix\": \"/a\", \"auth\": \"key\"}]}",
	"auth: must be one of session, bearer, none, not \"key\""},
    {X "\"http\": [{\"prefix\": \"/a\", \"port\": 1}]}", "port: must be a string"},
    {X "\"http\": [{\"prefix\": \"/a\", \"strip\": 1}]}", "strip: must be true or false"},
    {X "\"http\": [{\"prefix\": \"/a\", \"strip\": true}]}", "strip: \"/a\" has nothing below it"},
    {X "\"http\": [{\"prefix\": \"/a\", \"stream_body\": 1}]}",
	"stream_body: must be true or false"},
    {X "\"http\": [{\"prefix\": \"/a\", \"body_max\": 0}]}",
	"body_max: must be an integer from 1 to 1099511627776"},
    {X "\"http\": [{\"prefix\": \"/a\", \"body_max\": \"1\"}]}",
	"body_max: must be an integer from 1 to 1099511627776"},
    {X "\"start\": \"never\"}",
	"start: must be one of first-use, at-start, background, not \"never\""},
    {X "\"run_as\": \"server\", \"direct\": 1}", "direct: must be true or false"},
    {X "\"direct\": true}", "direct: needs run_as \"server\": requests have the session key"},
    {X "\"connection_token\": 0}", "connection_token: must be true or false"},
};

START_TEST(refused)
{
	ck_assert_int_eq(parse(bad[_i].text), -1);
	ck_assert_str_eq(err.msg, bad[_i].message);
}
END_TEST

START_TEST(too_much)
{
	HR_BUF(b, 1 << 20);
	int i;

	hr_buf_adds(&b, X "\"exec\": [\"0\"");
	for (i = 0; i < 64; i++)
		hr_buf_adds(&b, ", \"1\"");
	hr_buf_adds(&b, "]}");
	ck_assert_int_eq(parse(hr_buf_str(&b)), -1);
	ck_assert_str_eq(err.msg, "exec: more than 64 entries");
	hr_buf_reset(&b);
	hr_buf_adds(&b, X "\"version\": \"");
	for (i = 0; i < 300 << 10; i++)
		hr_buf_addc(&b, '1');
	hr_buf_adds(&b, "\"}");
	ck_assert_int_eq(parse(hr_buf_str(&b)), -1);
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
}
END_TEST

START_TEST(expansion)
{
	const struct hr_manifest_vars v = {
	    "/pd", "/sd", "/ws", "u", "7", "", "/le", "/dd", "99", "s", "r"};
	HR_BUF(b, 1000);

	ck_assert_int_eq(hr_manifest_expand(&b,
			     "$x ${plugin_dir}${state_dir}:${workspace} ${username}=${user_id} "
			     "[${runtime_id}] ${libexecdir} ${datadir}$"
			     "${vscode_port}${session_username}${runtime_username}",
			     &v, &err),
	    0);
	ck_assert_str_eq(hr_buf_str(&b), "$x /pd/sd:/ws u=7 [] /le /dd$99sr");
}
END_TEST

START_TEST(names)
{
	char longest[66] = "";

	memset(longest, 'a', 64);
	ck_assert(hr_manifest_name_ok(longest));
	longest[64] = 'a';
	ck_assert(!hr_manifest_name_ok(longest));
	ck_assert(hr_manifest_name_ok("agent_skills-2"));
	ck_assert(!hr_manifest_name_ok(""));
	ck_assert(!hr_manifest_name_ok("."));
	ck_assert(!hr_manifest_name_ok("a b"));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("manifest");
	TCase *tc = tcase_create("manifest");
	SRunner *sr;
	int failed;

	tcase_add_test(tc, a_whole_one);
	tcase_add_test(tc, defaults);
	tcase_add_loop_test(tc, refused, 0, (int)(sizeof(bad) / sizeof(bad[0])));
	tcase_add_test(tc, too_much);
	tcase_add_test(tc, expansion);
	tcase_add_test(tc, names);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
