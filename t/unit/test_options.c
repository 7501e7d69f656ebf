/* supervisor/options: the command line as hosts write it, and the original's messages. */
#include "config.h"

#include <check.h>
#include <string.h>

#include "supervisor/settings/options.h"

static struct hr_options o;
static struct hr_err err;

static int
parse(const char *const *words)
{
	static char copy[32][128];
	static char *argv[33];
	int n = 0;

	argv[n] = copy[31];
	for (n = 1; words[n - 1] != NULL; n++) {
		ck_assert_uint_lt(strlen(words[n - 1]), sizeof(copy[0]));
		argv[n] = strcpy(copy[n], words[n - 1]);
	}
	argv[n] = NULL;
	memset(&err, 0, sizeof(err));
	return hr_options_parse(&o, n, argv, &err);
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static const char *
value(const char *key)
{
	size_t i;

	for (i = 0; i < o.nvalues; i++) {
		if (strcmp(o.values[i].key, key) == 0)
			return o.values[i].value;
	}
	return NULL;
}

START_TEST(the_hosts_start_command)
{
	ck_assert_int_eq(
	    PARSE("30131", "--working-dir", "/workspace", "--plugins", "agent_skills", "jupyter",
		"vscode", "--username", "openhands", "--user-id", "1000", "--browsergym-eval-env",
		"browsergym/webarena.1", "--no-enable-browser"),
	    0);
	ck_assert_str_eq(value("port"), "30131");
	ck_assert_str_eq(value("working_dir"), "/workspace");
	ck_assert_str_eq(value("username"), "openhands");
	ck_assert_str_eq(value("user_id"), "1000");
	ck_assert_str_eq(value("browsergym_eval_env"), "browsergym/webarena.1");
	ck_assert_str_eq(value("enable_browser"), "false");
	ck_assert_uint_eq(o.nplugins, 3);
	ck_assert_str_eq(o.plugins[0], "agent_skills");
	ck_assert_str_eq(o.plugins[2], "vscode");
	ck_assert_int_eq(o.action, HR_ACTION_RUN);
}
END_TEST

START_TEST(values_behind_equals_signs)
{
	ck_assert_int_eq(
	    PARSE("--working-dir=/w=x", "--plugins=jupyter", "8000", "--username="), 0);
	ck_assert_str_eq(value("working_dir"), "/w=x");
	ck_assert_str_eq(value("username"), "");
	ck_assert_str_eq(value("port"), "8000");
	ck_assert_uint_eq(o.nplugins, 1);
	ck_assert_str_eq(o.plugins[0], "jupyter");
	/* the value may look like an option then */
	ck_assert_int_eq(PARSE("1", "--working-dir=--plugins"), 0);
	ck_assert_str_eq(value("working_dir"), "--plugins");
}
END_TEST

/* Every shortest prefix of the original must go on to work beside our own options. */
START_TEST(the_originals_prefixes)
{
	static const struct {
		const char *word, *key, *want;
	} rows[] = {
	    {"--w", "working_dir", "v"},
	    {"--work", "working_dir", "v"},
	    {"--usern", "username", "v"},
	    {"--user-", "user_id", "7"},
	    {"--b", "browsergym_eval_env", "v"},
	    {"--e", "enable_browser", "true"},
	    {"--n", "enable_browser", "false"},
	    {"--no-", "enable_browser", "false"},
	};

	if (strcmp(rows[_i].key, "enable_browser") == 0)
		ck_assert_int_eq(PARSE("1", rows[_i].word), 0);
	else
		ck_assert_int_eq(PARSE("1", rows[_i].word, rows[_i].want), 0);
	ck_assert_str_eq(value(rows[_i].key), rows[_i].want);
}
END_TEST

START_TEST(our_own_options)
{
	ck_assert_int_eq(PARSE("1", "--no-nginx", "--listen", "::1", "--run-dir=/r", "--state-dir",
			     "/s", "--log-format", "json", "--log-lev", "debug", "--foreground",
			     "--allow", "--config", "/c"),
	    0);
	ck_assert_str_eq(value("start_nginx"), "false");
	ck_assert_str_eq(value("listen"), "::1");
	ck_assert_str_eq(value("run_dir"), "/r");
	ck_assert_str_eq(value("state_dir"), "/s");
	ck_assert_str_eq(value("log_format"), "json");
	ck_assert_str_eq(value("log_level"), "debug");
	ck_assert_str_eq(value("allow_unauthenticated"), "true");
	ck_assert_str_eq(o.config_file, "/c");
}
END_TEST

START_TEST(a_later_value_replaces_an_earlier_one)
{
	ck_assert_int_eq(PARSE("1", "--username", "a", "--plugins", "x", "y", "--username", "b",
			     "--plugins", "z"),
	    0);
	ck_assert_str_eq(value("username"), "b");
	ck_assert_uint_eq(o.nplugins, 1);
	ck_assert_str_eq(o.plugins[0], "z");
	ck_assert_int_eq(PARSE("1", "--no-enable-browser", "--enable-browser"), 0);
	ck_assert_str_eq(value("enable_browser"), "true");
}
END_TEST

START_TEST(actions)
{
	ck_assert_int_eq(PARSE("-h", "--nonsense"), 0);
	ck_assert_int_eq(o.action, HR_ACTION_HELP);
	ck_assert_int_eq(PARSE("--help"), 0);
	ck_assert_int_eq(o.action, HR_ACTION_HELP);
	ck_assert_int_eq(PARSE("--version"), 0);
	ck_assert_int_eq(o.action, HR_ACTION_VERSION);
	ck_assert_int_eq(PARSE("3000", "--check"), 0);
	ck_assert_int_eq(o.action, HR_ACTION_CHECK);
	ck_assert_int_eq(PARSE("3000", "--print-nginx", "http"), 0);
	ck_assert_int_eq(o.action, HR_ACTION_PRINT_NGINX);
	ck_assert_str_eq(o.nginx_part, "http");
}
END_TEST

START_TEST(words_that_look_like_numbers_and_the_double_dash)
{
	ck_assert_int_eq(PARSE("--username", "u", "--", "4711"), 0);
	ck_assert_str_eq(value("port"), "4711");
	ck_assert_int_eq(PARSE("+80"), 0);
	ck_assert_int_eq(PARSE(" 3_000 "), 0); /* Python's int() takes it */
	ck_assert_str_eq(value("port"), " 3_000 ");
}
END_TEST

START_TEST(refusals)
{
	static const struct {
		const char *words[8];
		const char *message;
	} rows[] = {
	    {{"http"}, "argument port: invalid int value: 'http'"},
	    {{"80a"}, "argument port: invalid int value: '80a'"},
	    {{"1__0"}, "argument port: invalid int value: '1__0'"},
	    {{""}, "argument port: invalid int value: ''"},
	    {{"1", "2"}, "unrecognized arguments: 2"},
	    {{"1", "--user-id", "x"}, "argument --user-id: invalid int value: 'x'"},
	    {{"1", "--username"}, "argument --username: expected one argument"},
	    {{"1", "--username", "--plugins", "a"}, "argument --username: expected one argument"},
	    {{"1", "--plugins"}, "argument --plugins: expected at least one argument"},
	    {{"1", "--plugins", "--username", "a"},
		"argument --plugins: expected at least one argument"},
	    {{"1", "--user", "x"}, "ambiguous option: --user could match --username, --user-id"},
	    {{"1", "--bogus"}, "unrecognized arguments: --bogus"},
	    {{"1", "-x"}, "unrecognized arguments: -x"},
	    {{"1", "--no-enable-browser=1"},
		"argument --no-enable-browser: ignored explicit argument '1'"},
	    {{"1", "--plugins=a", "b"}, "unrecognized arguments: b"},
	    {{"1", "--browsergym-eval-env", "two", "words"}, "unrecognized arguments: words"},
	    {{"1", "--print-nginx", "mail"}, "argument --print-nginx: invalid choice: 'mail' "
					     "(choose from http, server, site, all)"},
	    {{"1", "--check=yes"}, "argument --check: ignored explicit argument 'yes'"},
	};

	ck_assert_int_eq(parse(rows[_i].words), -1);
	ck_assert_int_eq(err.code, HR_E_INVAL);
	ck_assert_str_eq(err.msg, rows[_i].message);
}
END_TEST

/* --plugins takes every word up to the next option, the port too: as the original. */
START_TEST(plugins_are_greedy)
{
	ck_assert_int_eq(PARSE("--plugins", "a", "3000"), 0);
	ck_assert_uint_eq(o.nplugins, 2);
	ck_assert_ptr_null(value("port"));
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("options");
	TCase *tc = tcase_create("options");
	SRunner *sr;
	int failed;

	tcase_add_test(tc, the_hosts_start_command);
	tcase_add_test(tc, values_behind_equals_signs);
	tcase_add_loop_test(tc, the_originals_prefixes, 0, 8);
	tcase_add_test(tc, our_own_options);
	tcase_add_test(tc, a_later_value_replaces_an_earlier_one);
	tcase_add_test(tc, actions);
	tcase_add_test(tc, words_that_look_like_numbers_and_the_double_dash);
	tcase_add_loop_test(tc, refusals, 0, 18);
	tcase_add_test(tc, plugins_are_greedy);
	suite_add_tcase(s, tc);
	sr = srunner_create(s);
	srunner_run_all(sr, CK_ENV);
	failed = srunner_ntests_failed(sr);
	srunner_free(sr);
	return failed == 0 ? 0 : 1;
}
