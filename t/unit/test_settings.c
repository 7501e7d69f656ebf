/* supervisor/settings: file, environment, command line, their order and their errors. */
#include "config.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/text/text.h"
#include "supervisor/settings/options.h"
#include "supervisor/settings/settings.h"

static struct hr_settings c;
static struct hr_err err;

static void
setup(void)
{
	memset(&err, 0, sizeof(err));
	ck_assert_int_eq(hr_settings_init(&c, &err), 0);
}

static void
teardown(void)
{
	hr_settings_done(&c);
}

static int
parse(const char *text)
{
	return hr_settings_parse(&c, text, strlen(text), &err);
}

START_TEST(defaults)
{
	ck_assert_int_eq(c.port, 0);
	ck_assert_str_eq(c.working_dir, "");
	ck_assert_str_eq(c.username, "openhands");
	ck_assert_int_eq(c.user_id, 1000);
	ck_assert(c.enable_browser);
	ck_assert(c.su_to_user);
	ck_assert(c.start_nginx);
	ck_assert(!c.allow_unauthenticated);
	ck_assert_str_eq(c.sandbox_group, "root");
	ck_assert_int_eq(c.no_change_timeout, 10);
	ck_assert_int_eq(c.init_plugin_timeout, 120);
	ck_assert_int_eq(c.action_workers, 2);
	ck_assert_int_eq(c.action_workers_max, 128);
	ck_assert_int_eq(c.stop_timeout, 0);
	ck_assert_ptr_null(c.plugins.v);
}
END_TEST

START_TEST(a_file_with_comments)
{
	ck_assert_int_eq(parse("/* a */ {\n"
			       "  \"port\": 3000, // here\n"
			       "  \"username\": \"caf\xc3\xa9\",\n"
			       "  \"start_nginx\": false,\n"
			       "  \"plugins\": [\"jupyter\", \"vscode\"]\n"
			       "}\n\n"),
	    0);
	ck_assert_int_eq(c.port, 3000);
	ck_assert_str_eq(c.username, "caf\xc3\xa9");
	ck_assert(!c.start_nginx);
	ck_assert_uint_eq(c.plugins.n, 2);
	ck_assert_str_eq(c.plugins.v[1], "vscode");
	ck_assert_ptr_null(c.plugins.v[2]);
}
END_TEST

START_TEST(file_errors_name_the_place)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
	    {"{\"prot\": 1}", "unknown key \"prot\"; did you mean \"port\"?"},
	    {"{\"action_worker_max\": 1}",
		"unknown key \"action_worker_max\"; did you mean \"action_workers_max\"?"},
	    {"{\"zzzzzzzzzzzzzzzz\": 1}", "unknown key \"zzzzzzzzzzzzzzzz\""},
	    {"{\"port\": \"3000\"}", "port: must be an integer"},
	    {"{\"port\": 3000.5}", "port: must be an integer"},
	    {"{\"port\": 70000}", "port: 70000 is not between 1 and 65535"},
	    {"{\"port\": null}", "port: must be an integer"},
	    {"{\"username\": 5}", "username: must be a string"},
	    {"{\"username\": \"a\\u0000b\"}", "username: must not contain a NUL byte"},
	    {"{\"start_nginx\": \"yes\"}", "start_nginx: must be true or false"},
	    {"{\"plugins\": \"jupyter\"}", "plugins: must be a list"},
	    {"{\"plugins\": [\"a\", 1]}", "plugins: entry 2 must be a string"},
	    {"{\"plugins\": [\"a\", \"b\\u0000c\"]}",
		"plugins: entry 2 must not contain a NUL byte"},
	    {"[1]", "must be a JSON object"},
	    {"3", "must be a JSON object"},
	    {"{} x", "line 1: only one object is allowed"},
	    {"{}\n{}", "line 2: only one object is allowed"},
	};

	ck_assert_int_eq(parse(rows[_i].text), -1);
	ck_assert_str_eq(err.msg, rows[_i].message);
}
END_TEST

START_TEST(broken_syntax_names_the_line)
{
	static const char *const texts[] = {"{\n\n\"port\" 3}", "{\n\n'", "{\n\n\"port\": }"};

	ck_assert_int_eq(parse(texts[_i]), -1);
	ck_assert_int_eq(strncmp(err.msg, "line 3: ", 8), 0);
}
END_TEST

START_TEST(hostile_files_are_refused)
{
	static char deep[5000];

	ck_assert_int_eq(parse(""), -1);
	ck_assert_int_eq(parse("{"), -1);
	ck_assert_int_eq(parse("{\"username\": \"\xff\xfe\"}"), -1);
	memset(deep, '[', sizeof(deep) - 1);
	ck_assert_int_eq(parse(deep), -1);
	ck_assert_int_eq(hr_settings_parse(&c, "{}\0{}", 5, &err), -1);
	ck_assert_int_eq(hr_settings_parse(&c, deep, (2u << 20), &err), -1);
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
}
END_TEST

START_TEST(reading_names_the_file)
{
	char dir[] = "/tmp/test_settings.XXXXXX", path[sizeof(dir) + 2];

	ck_assert_ptr_nonnull(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/f", dir);
	ck_assert_int_eq(hr_path_write(path, "{\"x\":1}", 7, 0600, NULL), 0);
	ck_assert_int_eq(hr_settings_read(&c, path, &err), -1);
	ck_assert_int_eq(strncmp(err.msg, path, strlen(path)), 0);
	ck_assert_ptr_nonnull(strstr(err.msg, "unknown key \"x\""));
	/* it names programs that are run with handraild's rights */
	ck_assert_int_eq(chmod(dir, 0777), 0);
	ck_assert_int_eq(hr_settings_read(&c, path, &err), -1);
	ck_assert_int_eq(err.code, HR_E_UNTRUSTED);
	ck_assert_ptr_nonnull(strstr(err.msg, "others may write its directory"));
	ck_assert_int_eq(hr_path_remove(dir, NULL), 0);
	ck_assert_int_eq(hr_settings_read(&c, path, &err), -1);
	ck_assert_int_eq(err.sys, ENOENT);
}
END_TEST

static const char *const *fake_env;

static const char *
fake_get(const char *name)
{
	size_t n = strlen(name), i;

	for (i = 0; fake_env[i] != NULL; i++) {
		if (strncmp(fake_env[i], name, n) == 0 && fake_env[i][n] == '=')
			return fake_env[i] + n + 1;
	}
	return NULL;
}

static int
environment(const char *const *env)
{
	fake_env = env;
	return hr_settings_environment(&c, fake_get, &err);
}

START_TEST(environment_of_the_contract)
{
	const char *const env[] = {"NO_CHANGE_TIMEOUT_SECONDS= 30 ", "RUNTIME_MAX_MEMORY_GB=4",
	    "SU_TO_USER=No", "RUNTIME_USERNAME=alice", "SANDBOX_GROUP_ID=1234", "LOG_JSON=True",
	    "INIT_PLUGIN_TIMEOUT=7", "VSCODE_PORT=no", "LOG_LEVEL=WARNING", NULL};

	ck_assert_int_eq(environment(env), 0);
	ck_assert_int_eq(c.no_change_timeout, 30);
	ck_assert_int_eq(c.max_memory_gb, 4);
	ck_assert(!c.su_to_user);
	ck_assert_str_eq(c.runtime_username, "alice");
	ck_assert_str_eq(c.sandbox_group, "1234");
	ck_assert_str_eq(c.log_format, "json");
	ck_assert_int_eq(c.init_plugin_timeout, 7);
	ck_assert_str_eq(c.vscode_port, "no");
	ck_assert_str_eq(c.log_level, "WARNING");
}
END_TEST

START_TEST(integers_of_the_environment_must_be_integers)
{
	static const char *const rows[][2] = {{"NO_CHANGE_TIMEOUT_SECONDS=ten", NULL},
	    {"RUNTIME_MAX_MEMORY_GB=1.5", NULL}, {"RUNTIME_MAX_MEMORY_GB=", NULL},
	    {"INIT_PLUGIN_TIMEOUT=1s", NULL}};

	ck_assert_int_eq(environment(rows[_i]), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "environment variable "));
}
END_TEST

START_TEST(su_to_user_has_a_list_of_truths)
{
	static const struct {
		const char *env[2];
		bool want;
	} rows[] = {{{"SU_TO_USER=1"}, true}, {{"SU_TO_USER=TRUE"}, true}, {{"SU_TO_USER=t"}, true},
	    {{"SU_TO_USER=yes"}, true}, {{"SU_TO_USER=Y"}, true}, {{"SU_TO_USER=on"}, true},
	    {{"SU_TO_USER=0"}, false}, {{"SU_TO_USER="}, false}, {{"SU_TO_USER=maybe"}, false},
	    {{"SU_TO_USER=2"}, false}};

	ck_assert_int_eq(environment(rows[_i].env), 0);
	ck_assert_int_eq(c.su_to_user, rows[_i].want);
}
END_TEST

START_TEST(debug_forces_the_level)
{
	const char *const env[] = {"LOG_LEVEL=error", "DEBUG=1", NULL};
	const char *const odd[] = {"LOG_LEVEL=purple", "DEBUG=0", NULL};

	ck_assert_int_eq(environment(env), 0);
	ck_assert_str_eq(c.log_level, "debug");
	teardown();
	setup();
	ck_assert_int_eq(environment(odd), 0); /* a level we do not know is no reason to fail */
	ck_assert_str_eq(c.log_level, "info");
}
END_TEST

/* The agent server takes any value of its variables, and no browser sends some of them. */
START_TEST(origins_of_the_agent_server)
{
	const char *const env[] = {"HANDRAIL_CORS_ORIGINS=https://a.example",
	    "OH_ALLOW_CORS_ORIGINS_0=https://b.example:1", "OH_ALLOW_CORS_ORIGINS_1=c.example",
	    "OH_ALLOW_CORS_ORIGINS_2=https://d.example https://e.example",
	    "OH_ALLOW_CORS_ORIGINS_3=", "OH_ALLOW_CORS_ORIGINS_4=null", "OH_ALLOW_CORS_ORIGINS_5=*",
	    "OH_ALLOW_CORS_ORIGINS_7=https://f.example", "DOCKER_HOST_ADDR=10.0.0.1", NULL};
	const char *const odd[] = {"DOCKER_HOST_ADDR=http://x", NULL};

	ck_assert_int_eq(environment(env), 0);
	ck_assert_str_eq(c.cors_origins, "https://a.example https://b.example:1 * 10.0.0.1");
	teardown();
	setup();
	ck_assert_int_eq(environment(odd), 0);
	ck_assert_str_eq(c.cors_origins, "");
}
END_TEST

START_TEST(the_later_source_wins)
{
	const char *const env[] = {"NO_CHANGE_TIMEOUT_SECONDS=20", "LOG_JSON=1", NULL};
	char *plugins[] = {(char[]){"vscode"}};
	struct hr_options o = {.values = {{"log_format", "text"}, {"port", "99"}},
	    .nvalues = 2,
	    .plugins = plugins,
	    .nplugins = 1};

	ck_assert_int_eq(parse("{\"no_change_timeout\": 5, \"port\": 1, \"log_format\": \"json\","
			       "\"plugins\": [\"a\", \"b\"], \"user_id\": 7}"),
	    0);
	ck_assert_int_eq(environment(env), 0);
	ck_assert_int_eq(hr_options_apply(&o, &c, &err), 0);
	ck_assert_int_eq(c.no_change_timeout, 20);
	ck_assert_str_eq(c.log_format, "text");
	ck_assert_int_eq(c.port, 99);
	ck_assert_int_eq(c.user_id, 7);
	ck_assert_uint_eq(c.plugins.n, 1);
	ck_assert_str_eq(c.plugins.v[0], "vscode");
}
END_TEST

START_TEST(checks_across_settings)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
	    {"{}", "the following arguments are required: port"},
	    {"{\"port\":1,\"log_format\":\"xml\"}",
		"log_format: must be text or json, not \"xml\""},
	    {"{\"port\":1,\"log_level\":\"loud\"}",
		"log_level: must be error, warning, notice, info or debug, not \"loud\""},
	    {"{\"port\":1,\"access_log\":\"on\"}",
		"access_log: must be \"off\" or an absolute path, not \"on\""},
	    {"{\"port\":1,\"access_log\":\"/a; b\"}",
		"access_log: \"/a; b\" holds a character that nginx's configuration cannot"},
	    {"{\"port\":1,\"action_workers\":9,\"action_workers_max\":8}",
		"action_workers (9) must not be more than action_workers_max (8)"},
	};

	ck_assert_int_eq(parse(rows[_i].text), 0);
	ck_assert_int_eq(hr_settings_check(&c, &err), -1);
	ck_assert_str_eq(err.msg, rows[_i].message);
}
END_TEST

START_TEST(adopting_takes_what_may_change)
{
	struct hr_settings fresh;

	ck_assert_int_eq(hr_settings_init(&fresh, NULL), 0);
	ck_assert_int_eq(hr_settings_set(&fresh, "action_workers_max", "40", NULL), 0);
	ck_assert_int_eq(hr_settings_set(&fresh, "log_level", "debug", NULL), 0);
	ck_assert_ptr_null(hr_settings_adopt(&c, &fresh));
	ck_assert_int_eq(c.action_workers_max, 40);
	ck_assert_str_eq(c.log_level, "debug");
	ck_assert_int_eq(fresh.action_workers_max, 128); /* the old ones, to be freed */
	ck_assert_int_eq(hr_settings_set(&fresh, "username", "other", NULL), 0);
	ck_assert_str_eq(hr_settings_adopt(&c, &fresh), "username");
	ck_assert_str_eq(c.username, "openhands");
	hr_settings_done(&fresh);
}
END_TEST

/* An evaluation without a browser's pages starts none. */
START_TEST(evaluations_that_browse)
{
	static const struct {
		const char *evaluation;
		bool browses;
	} rows[] = {{"", true}, {"browsergym/webarena.1", true}, {"visualwebarena", true},
	    {"browsergym/miniwob.click", true}, {"swe-bench", false}};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ck_assert_int_eq(
		    hr_settings_set(&c, "browsergym_eval_env", rows[i].evaluation, &err), 0);
		ck_assert_int_eq(hr_settings_browses(&c), rows[i].browses);
	}
	ck_assert_int_eq(hr_settings_set(&c, "browsergym_eval_env", "", &err), 0);
	ck_assert_int_eq(hr_settings_set(&c, "enable_browser", "false", &err), 0);
	ck_assert(!hr_settings_browses(&c));
}
END_TEST

START_TEST(integers_as_python_reads_them)
{
	static const struct {
		const char *text;
		int ok;
		long long n;
	} rows[] = {{"0", 0, 0}, {"-5", 0, -5}, {"+5", 0, 5}, {" 7\n", 0, 7}, {"1_000", 0, 1000},
	    {"007", 0, 7}, {"9223372036854775807", 0, 9223372036854775807LL},
	    {"9223372036854775808", -1, 0}, {"", -1, 0}, {" ", -1, 0}, {"-", -1, 0}, {"_1", -1, 0},
	    {"1_", -1, 0}, {"1__0", -1, 0}, {"0x10", -1, 0}, {"1 2", -1, 0}, {"1.0", -1, 0}};
	long long n = 77;

	ck_assert_int_eq(hr_text_python_int(rows[_i].text, &n), rows[_i].ok);
	ck_assert_int_eq(n, rows[_i].ok == 0 ? rows[_i].n : 77);
}
END_TEST

/* What is shipped must be what is read: every key of the sample is known and has its default. */
START_TEST(the_sample_file_is_the_defaults)
{
	const char *top = getenv("srcdir");
	HR_FREE char *path = hr_path_join(top != NULL ? top : ".", "conf/handrail.conf.json.in");
	struct hr_settings fresh;

	ck_assert_int_eq(hr_settings_init(&fresh, NULL), 0);
	ck_assert_msg(hr_settings_read(&fresh, path, &err) == 0, "%s", err.msg);
	/* settings without a default worth writing down differ */
	ck_assert_int_eq(fresh.action_workers_max, c.action_workers_max);
	ck_assert_ptr_null(hr_settings_adopt(&c, &fresh));
	hr_settings_done(&fresh);
}
END_TEST

static void
every_name_is_in(const char *file, const char *form)
{
	const char *top = getenv("srcdir"), *name;
	HR_BUF(text, 1 << 20);
	HR_FREE char *path = hr_path_join(top != NULL ? top : ".", file);
	char want[80];
	size_t i;

	ck_assert_msg(hr_path_read(path, &text, &err) == 0, "%s", err.msg);
	for (i = 0; (name = hr_settings_name(i)) != NULL; i++) {
		(void)snprintf(want, sizeof(want), form, name);
		ck_assert_msg(
		    strstr(hr_buf_str(&text), want) != NULL, "%s says nothing of %s", file, name);
	}
}

START_TEST(every_setting_is_documented)
{
	every_name_is_in("conf/handrail.conf.json.in", "\"%s\":");
	every_name_is_in("man/handrail.conf.5.in", ".It Cm %s");
}
END_TEST

/* Changes one setting in two ways, one of which is not the default. Returns true if both were
 * adopted. */
static bool
is_adopted(const char *name)
{
	static const char *const values[] = {"1", "2", "true", "false", "70000", "80000"};
	bool all = true;
	unsigned n = 0;
	size_t i;

	for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct hr_settings old, fresh;
		const char *stays;

		ck_assert_int_eq(hr_settings_init(&old, NULL), 0);
		ck_assert_int_eq(hr_settings_init(&fresh, NULL), 0);
		if (hr_settings_set(&fresh, name, values[i], NULL) == 0) {
			stays = hr_settings_adopt(&old, &fresh);
			ck_assert(stays == NULL || strcmp(stays, name) == 0);
			all = all && stays == NULL;
			n++;
		}
		hr_settings_done(&old);
		hr_settings_done(&fresh);
	}
	/* a list of strings can be set in a file alone, and no reload applies one */
	ck_assert_msg(n == 0 || n >= 2, "%s takes %u of the values", name, n);
	return n > 0 && all;
}

/* A reload applies the settings with the mark "reload" in the manual, and no other. */
START_TEST(reloads_as_documented)
{
	const char *top = getenv("srcdir"), *name, *line;
	HR_BUF(text, 1 << 20);
	HR_FREE char *path = hr_path_join(top != NULL ? top : ".", "man/handrail.conf.5.in");
	char want[80];
	size_t i;

	ck_assert_msg(hr_path_read(path, &text, &err) == 0, "%s", err.msg);
	for (i = 0; (name = hr_settings_name(i)) != NULL; i++) {
		(void)snprintf(want, sizeof(want), ".It Cm %s Pq ", name);
		line = strstr(hr_buf_str(&text), want);
		ck_assert_msg(line != NULL, "%s has no type in the manual", name);
		ck_assert_msg(is_adopted(name) == (memmem(line, strcspn(line, "\n"), "; Em reload",
						       strlen("; Em reload")) != NULL),
		    "%s: a reload does not what the manual says", name);
	}
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("settings");
	TCase *tc = tcase_create("settings");
	SRunner *sr;
	int failed;

	tcase_add_checked_fixture(tc, setup, teardown);
	tcase_add_test(tc, defaults);
	tcase_add_test(tc, a_file_with_comments);
	tcase_add_loop_test(tc, file_errors_name_the_place, 0, 16);
	tcase_add_loop_test(tc, broken_syntax_names_the_line, 0, 3);
	tcase_add_test(tc, hostile_files_are_refused);
	tcase_add_test(tc, reading_names_the_file);
	tcase_add_test(tc, environment_of_the_contract);
	tcase_add_loop_test(tc, integers_of_the_environment_must_be_integers, 0, 4);
	tcase_add_loop_test(tc, su_to_user_has_a_list_of_truths, 0, 10);
	tcase_add_test(tc, debug_forces_the_level);
	tcase_add_test(tc, origins_of_the_agent_server);
	tcase_add_test(tc, the_later_source_wins);
	tcase_add_loop_test(tc, checks_across_settings, 0, 5);
	tcase_add_test(tc, adopting_takes_what_may_change);
	tcase_add_test(tc, evaluations_that_browse);
	tcase_add_loop_test(tc, integers_as_python_reads_them, 0, 17);
	tcase_add_test(tc, the_sample_file_is_the_defaults);
	tcase_add_test(tc, every_setting_is_documented);
	tcase_add_test(tc, reloads_as_documented);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
