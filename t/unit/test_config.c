/* Settings that tests of other parts do not reach: every key of a section, and lists of MCP
 * servers. */
#include "config.h"

#include <check.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/path.h"
#include "host/handrail.h"
#include "host/config/mcpconf.h"
#include "host/config/rules.h"
#include "host/config/settings.h"
#include "proto/json.h"
#include "lines.h"

#define N(a) (int)(sizeof(a) / sizeof(*(a)))

static char top[32];

static void
set_up(void)
{
	(void)snprintf(top, sizeof(top), "/tmp/test_config.XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(top));
	ck_assert_int_eq(chdir(top), 0);
}

static void
tear_down(void)
{
	ck_assert_int_eq(chdir("/"), 0);
	ck_assert_int_eq(hr_path_remove(top, NULL), 0);
}

static char warned[4096];

static void
on_warning(void *arg, const char *text)
{
	(void)arg;
	(void)snprintf(warned, sizeof(warned), "%s", text);
}

static struct hr_config *
load(const char *file, const char *const *env, int want, struct hr_err *err)
{
	struct hr_config *c = hr_config_new(NULL);

	warned[0] = '\0';
	ck_assert_int_eq(hr_path_write("config.toml", file, strlen(file), 0644, NULL), 0);
	ck_assert_int_eq(hr_config_load(c, NULL, env, on_warning, NULL, err), want);
	return c;
}

/* ---- kubernetes ---- */

static const struct {
	const char *name, *fallback; /* NULL: none */
} kubernetes[] = {
    {"namespace", "default"},
    {"ingress_domain", "localhost"},
    {"pvc_storage_size", "2Gi"},
    {"pvc_storage_class", NULL},
    {"resource_cpu_request", "1"},
    {"resource_memory_request", "1Gi"},
    {"resource_memory_limit", "2Gi"},
    {"image_pull_secret", NULL},
    {"ingress_tls_secret", NULL},
    {"node_selector_key", NULL},
    {"node_selector_val", NULL},
    {"tolerations_yaml", NULL},
};

/* From a file, and each over it from the environment. */
START_TEST(every_kubernetes_key)
{
	char key[64], variable[96], want[64];
	const char *env[] = {variable, NULL};
	struct hr_err err = {0};
	struct hr_config *c;
	HR_BUF(b, 1 << 16);
	const char *got;
	int i, k;

	hr_buf_adds(&b, "[core]\n[kubernetes]\nprivileged = true\n");
	c = load("[core]\n", NULL, 0, &err);
	for (i = 0; i < N(kubernetes); i++) {
		(void)snprintf(key, sizeof(key), "kubernetes.%s", kubernetes[i].name);
		got = hr_config_text(c, key);
		ck_assert_str_eq(got != NULL ? got : "-",
		    kubernetes[i].fallback != NULL ? kubernetes[i].fallback : "-");
		hr_buf_addf(&b, "%s = \"own %d\"\n", kubernetes[i].name, i);
	}
	ck_assert(!hr_config_bool(c, "kubernetes.privileged"));
	hr_config_free(c);
	for (k = 0; k < N(kubernetes); k++) {
		size_t n = (size_t)snprintf(
		    variable, sizeof(variable), "KUBERNETES_%s=env", kubernetes[k].name);
		size_t j;

		for (j = 0; j < n - 4; j++)
			variable[j] = (char)toupper((unsigned char)variable[j]);
		c = load(b.p, env, 0, &err);
		ck_assert_str_eq(warned, "");
		ck_assert(hr_config_bool(c, "kubernetes.privileged"));
		for (i = 0; i < N(kubernetes); i++) {
			(void)snprintf(key, sizeof(key), "kubernetes.%s", kubernetes[i].name);
			(void)snprintf(want, sizeof(want), "own %d", i);
			ck_assert_str_eq(hr_config_text(c, key), i == k ? "env" : want);
		}
		hr_config_free(c);
	}
}
END_TEST

/* ---- the cache ---- */

START_TEST(cache_directory)
{
	static const char *const env[] = {"CACHE_DIR=some/where", NULL};
	struct hr_err err = {0};
	struct stat st;

	hr_config_free(load("[core]\ncache_dir = \"other\"\n", env, 0, &err));
	ck_assert(stat("some/where", &st) == 0 && S_ISDIR(st.st_mode));
	ck_assert_int_eq(access("other", F_OK), -1);
	/* one that cannot be made is told of, and no more */
	hr_config_free(load("[core]\ncache_dir = \"config.toml/x\"\n", NULL, 0, &err));
	ck_assert_ptr_nonnull(strstr(warned, "config.toml"));
}
END_TEST

/* ---- MCP servers ---- */

static const struct {
	const char *name, *list; /* JSON */
	const char *want;        /* JSON, or a message */
} mcp[] = {
    {"sse_servers", "[]", "[]"},
    {"sse_servers", "[\"http://a:8080\", \" https://b/x?y \"]",
	"[{\"url\":\"http://a:8080\"},{\"url\":\"https://b/x?y\"}]"},
    {"sse_servers", "[{\"url\": \"ws://u:p@h/a/b#c\", \"api_key\": \"k\"}, \"WSS://[::1]:1/\"]",
	"[{\"url\":\"ws://u:p@h/a/b#c\",\"api_key\":\"k\"},{\"url\":\"WSS://[::1]:1/\"}]"},
    {"sse_servers", "[\"not_a_url\"]", "URL must include a scheme (http:// or https://)"},
    {"sse_servers", "[\"//host\"]", "URL must include a scheme (http:// or https://)"},
    {"sse_servers", "[\"1http://host\"]", "URL must include a scheme (http:// or https://)"},
    {"sse_servers", "[\"  \"]", "URL cannot be empty"},
    {"sse_servers", "[\"http://\"]", "URL must include a valid domain/host"},
    {"sse_servers", "[\"http:///path\"]", "URL must include a valid domain/host"},
    {"sse_servers", "[\"localhost:8080\"]", "URL must include a valid domain/host"},
    {"sse_servers", "[\"ftp://host\"]", "URL scheme must be http, https, ws, or wss"},
    {"sse_servers", "[\"http://a\", {\"url\": \"http://a \"}]",
	"Duplicate MCP server URLs are not allowed"},
    {"sse_servers", "[{}]", "URL is a text"},
    {"sse_servers", "[1]", "a server must be a URL, or a table with url"},
    {"sse_servers", "[{\"url\": \"http://a\", \"api_key\": 1}]", "api_key must be a string"},
    {"shttp_servers", "[\"http://a\", \"http://a\"]",
	"[{\"url\":\"http://a\",\"timeout\":60},{\"url\":\"http://a\",\"timeout\":60}]"},
    {"shttp_servers", "[{\"url\": \"http://a\"}]", "[{\"url\":\"http://a\",\"timeout\":60}]"},
    {"shttp_servers", "[{\"url\": \"http://a\", \"timeout\": null}]",
	"[{\"url\":\"http://a\",\"timeout\":null}]"},
    {"shttp_servers", "[{\"url\": \"http://a\", \"timeout\": 1}]",
	"[{\"url\":\"http://a\",\"timeout\":1}]"},
    {"shttp_servers", "[{\"url\": \"http://a\", \"timeout\": 3600}]",
	"[{\"url\":\"http://a\",\"timeout\":3600}]"},
    {"shttp_servers", "[{\"url\": \"http://a\", \"timeout\": 0}]", "Timeout must be positive"},
    {"shttp_servers", "[{\"url\": \"http://a\", \"timeout\": -5}]", "Timeout must be positive"},
    {"shttp_servers", "[{\"url\": \"http://a\", \"timeout\": 3601}]",
	"Timeout cannot exceed 3600 seconds"},
    {"shttp_servers", "[{\"url\": \"http://a\", \"timeout\": \"x\"}]",
	"Timeout is a number of seconds"},
    {"stdio_servers", "[{\"name\": \" a-b_1 \", \"command\": \" python \"}]",
	"[{\"name\":\"a-b_1\",\"command\":\"python\",\"args\":[],\"env\":{}}]"},
    {"stdio_servers",
	"[{\"name\": \"a\", \"command\": \"x\", \"args\": [\"b\", \"a\"], \"env\": {\"K\": "
	"\"v\"}}]",
	"[{\"name\":\"a\",\"command\":\"x\",\"args\":[\"b\",\"a\"],\"env\":{\"K\":\"v\"}}]"},
    {"stdio_servers",
	"[{\"name\": \"a\", \"command\": \"x\", \"args\": \"-y --c 'a b' \\\"c\\\\\\\"d\\\\n\\\" "
	"e\\\\ f '' "
	"g\\\"h\\\"\", \"env\": \"K=v, L = w=x ,,_1=\"}]",
	"[{\"name\":\"a\",\"command\":\"x\",\"args\":[\"-y\",\"--c\",\"a b\",\"c\\\"d\\\\n\",\"e "
	"f\",\"\","
	"\"gh\"],\"env\":{\"K\":\"v\",\"L\":\"w=x\",\"_1\":\"\"}}]"},
    {"stdio_servers", "[{\"name\": \"a\", \"command\": \"x\", \"args\": \"  \"}]",
	"[{\"name\":\"a\",\"command\":\"x\",\"args\":[],\"env\":{}}]"},
    {"stdio_servers", "[{\"name\": \"a\", \"command\": \"x\", \"args\": \"a 'b\"}]",
	"Invalid argument format: No closing quotation"},
    {"stdio_servers", "[{\"name\": \"a\", \"command\": \"x\", \"args\": \"a \\\"b\\\\\"}]",
	"Invalid argument format: No closing quotation"},
    {"stdio_servers", "[{\"name\": \"a\", \"command\": \"x\", \"args\": \"b\\\\\"}]",
	"Invalid argument format: No escaped character"},
    {"stdio_servers", "[{\"name\": \"a\", \"command\": \"x\", \"args\": \"b\\\\\\\\\"}]",
	"[{\"name\":\"a\",\"command\":\"x\",\"args\":[\"b\\\\\"],\"env\":{}}]"},
    {"stdio_servers", "[{\"name\": \"a\", \"command\": \"x\", \"args\": \"b\\\\\\\\\\\\\"}]",
	"Invalid argument format: No escaped character"},
    {"stdio_servers", "[{\"name\": \"a\", \"command\": \"x\", \"args\": \"'b\\\\'\"}]",
	"[{\"name\":\"a\",\"command\":\"x\",\"args\":[\"b\\\\\"],\"env\":{}}]"},
    {"stdio_servers", "[{\"name\": \"a\", \"command\": \"x\", \"args\": [1]}]",
	"args is a list of texts, or a text"},
    {"stdio_servers", "[{\"name\": \" \", \"command\": \"x\"}]", "Server name cannot be empty"},
    {"stdio_servers", "[{\"name\": \"a b\", \"command\": \"x\"}]",
	"Server name can only contain letters, numbers, hyphens, and underscores"},
    {"stdio_servers", "[{\"name\": \"a\", \"command\": \" \"}]", "Command cannot be empty"},
    {"stdio_servers", "[{\"name\": \"a\", \"command\": \"x y\"}]",
	"Command should be a single executable without spaces (use arguments field for "
	"parameters)"},
    {"stdio_servers", "[{\"name\": \"a\"}]", "Command is a text"},
    {"stdio_servers", "[\"x\"]", "a server must be a table with name and command"},
    {"stdio_servers", "[{\"name\": \"a\", \"command\": \"x\", \"env\": \"A=b,C\"}]",
	"Environment variable 'C' must be in KEY=VALUE format"},
    {"stdio_servers", "[{\"name\": \"a\", \"command\": \"x\", \"env\": \" =b\"}]",
	"Environment variable key cannot be empty"},
    {"stdio_servers", "[{\"name\": \"a\", \"command\": \"x\", \"env\": \"1A=b\"}]",
	"Invalid environment variable name '1A'. Must contain only letters, numbers, and "
	"underscores, and start with a letter or underscore"},
    {"stdio_servers", "[{\"name\": \"a\", \"command\": \"x\", \"env\": {\"A\": 1}}]",
	"The value of environment variable 'A' is a text"},
    {"stdio_servers", "[{\"name\": \"a\", \"command\": \"x\", \"env\": 1}]",
	"env is a map of texts, or a text"},
};

START_TEST(mcp_lists)
{
	HR_PUT struct json_object *list = json_tokener_parse(mcp[_i].list);
	HR_PUT struct json_object *checked = NULL;
	struct hr_err err = {0};

	ck_assert_ptr_nonnull(list);
	checked = hr_mcpconf_check(mcp[_i].name, list, &err);
	if (mcp[_i].want[0] == '[')
		ck_assert_str_eq(checked != NULL ? json_object_to_json_string_ext(
						       checked, JSON_C_TO_STRING_NOSLASHESCAPE)
						 : err.msg,
		    mcp[_i].want);
	else
		ck_assert_str_eq(checked == NULL ? err.msg : "accepted", mcp[_i].want);
}
END_TEST

/* A file is refused, a variable is not used; one that is right beats the file. */
START_TEST(mcp_from_where)
{
	static const char *const right[] = {
	    "MCP_SHTTP_SERVERS=[{'url': 'http://env', 'api_key': 'secret', 'timeout': 9}]", NULL};
	static const char *const wrong[] = {
	    "MCP_SHTTP_SERVERS=[{'url': 'env', 'api_key': 'secret'}]", NULL};
	static const char file[] = "[core]\n[mcp]\nshttp_servers = [\"http://file\"]\n";
	struct hr_err err = {0};
	struct hr_config *c = load(file, right, 0, &err);

	ck_assert_str_eq(json_object_to_json_string_ext(hr_config_value(c, "mcp.shttp_servers"),
			     JSON_C_TO_STRING_NOSLASHESCAPE),
	    "[{\"url\":\"http://env\",\"api_key\":\"secret\",\"timeout\":9}]");
	ck_assert_int_eq(hr_config_set(c, "mcp.sse_servers", "['x']", &err), -1);
	ck_assert_str_eq(
	    err.msg, "mcp.sse_servers: URL must include a scheme (http:// or https://)");
	ck_assert_int_eq(hr_config_set(c, "mcp.sse_servers", "['http://x']", &err), 0);
	hr_config_free(c);
	c = load(file, wrong, 0, &err);
	ck_assert_str_eq(warned, "Error setting env var MCP_SHTTP_SERVERS=******: URL must include "
				 "a scheme (http:// or https://)");
	ck_assert_str_eq(json_object_to_json_string_ext(hr_config_value(c, "mcp.shttp_servers"),
			     JSON_C_TO_STRING_NOSLASHESCAPE),
	    "[{\"url\":\"http://file\",\"timeout\":60}]");
	hr_config_free(c);
	c = load("[core]\n[mcp]\nsse_servers = [\"file\"]\n", NULL, -1, &err);
	ck_assert_str_eq(err.msg, "Error in MCP sections in config.toml");
	ck_assert_str_eq(
	    warned, "sse_servers in [mcp]: URL must include a scheme (http:// or https://)");
	hr_config_free(c);
}
END_TEST

/* ---- rules of a network ---- */

/* A table of the file, as it is, with tables and arrays of tables inside. */
START_TEST(network_table)
{
	static const char file[] =
	    "[core]\n[sandbox.network]\nallowOut = [\"a.example:22\"]\nports = [443]\n"
	    "[sandbox.network.credentials.GITHUB_TOKEN]\nsecret = \"github\"\nhosts = [\"b\"]\n"
	    "[[sandbox.network.rules.\"b.example\"]]\nmethods = [\"GET\"]\n";
	static const char *const env[] = {"SANDBOX_NETWORK={\"presets\": [\"npm\"]}", NULL};
	struct hr_err err = {0};
	struct hr_config *c = load(file, NULL, 0, &err);
	HR_FREE char *json = NULL;

	ck_assert_str_eq(warned, "");
	ck_assert_int_eq(hr_rules_load(c, &err), 0);
	ck_assert_str_eq(json_object_to_json_string_ext(
			     hr_config_value(c, "sandbox.network"), JSON_C_TO_STRING_PLAIN),
	    "{\"allowOut\":[\"a.example:22\"],\"ports\":[443],\"credentials\":{\"GITHUB_TOKEN\":"
	    "{\"secret\":\"github\",\"hosts\":[\"b\"]}},\"rules\":{\"b.example\":[{\"methods\":"
	    "[\"GET\"]}]}}");
	ck_assert_int_eq(
	    hr_config_set(c, "sandbox.network",
		"{\"rules\": {\"h\": [{\"transform\": {\"headers\": {\"A\": \"hidden\"}}}]}}",
		&err),
	    0);
	json = hr_config_json(c, &err);
	ck_assert_ptr_nonnull(strstr(json,
	    "\"network\":{\"rules\":{\"h\":[{\"transform\":{\"headers\":{\"A\":\"******\"}}}]}}"));
	ck_assert_int_eq(hr_config_set(c, "sandbox.network", "[]", &err), -1);
	ck_assert_str_eq(err.msg, "sandbox.network must be an object in JSON, not: []");
	hr_config_free(c);
	c = load(file, env, 0, &err);
	ck_assert_str_eq(json_object_to_json_string_ext(
			     hr_config_value(c, "sandbox.network"), JSON_C_TO_STRING_PLAIN),
	    "{\"presets\":[\"npm\"]}");
	hr_config_free(c);
}
END_TEST

/* A denied entry goes and its neighbours stay; an address that was not allowed is listed as denied.
 */
START_TEST(denied_entries)
{
	static const struct {
		const char *entry, *left; /* NULL: an error */
	} rows[] = {{"b", "{\"allowOut\":[\"a\",\"c\"],\"presets\":[\"npm\",\"pypi\"]}"},
	    {"c", "{\"allowOut\":[\"a\"],\"presets\":[\"npm\",\"pypi\"]}"},
	    {"npm", "{\"allowOut\":[\"a\"],\"presets\":[\"pypi\"]}"}, {"c", NULL},
	    {"192.0.2.0/24",
		"{\"allowOut\":[\"a\"],\"presets\":[\"pypi\"],\"denyOut\":[\"192.0.2.0/24\"]}"}};
	static const char text[] =
	    "{\"allowOut\":[\"a\",\"b\",\"c\"],\"presets\":[\"npm\",\"pypi\"]}";
	struct hr_err err = {0};
	struct json_object *o = hr_rules_decode(text, sizeof(text) - 1, &err);
	int i;

	ck_assert_ptr_nonnull(o);
	for (i = 0; i < N(rows); i++) {
		const int r = hr_rules_deny(o, NULL, rows[i].entry, &err);

		ck_assert_int_eq(r, rows[i].left != NULL ? 0 : -1);
		if (rows[i].left != NULL)
			ck_assert_str_eq(
			    json_object_to_json_string_ext(
				o, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE),
			    rows[i].left);
	}
	json_object_put(o);
}
END_TEST

static void
load_rules(const char *text, mode_t mode, struct hr_config *c, int want, struct hr_err *err)
{
	ck_assert_int_eq(hr_path_write("net.json", text, strlen(text), 0600, NULL), 0);
	ck_assert_int_eq(chmod("net.json", mode), 0);
	ck_assert_int_eq(hr_config_set(c, "sandbox.network_file", "net.json", NULL), 0);
	ck_assert_int_eq(hr_rules_load(c, err), want);
}

/* The file's content takes its place, so that a pool compares that. */
START_TEST(network_file)
{
	struct hr_err err = {0};
	struct hr_config *c = load("[core]\n", NULL, 0, &err);

	load_rules("[]", 0600, c, -1, &err);
	ck_assert_str_eq(err.msg, "sandbox.network_file: net.json: the rules must be an object");
	load_rules("{\"a\":}", 0600, c, -1, &err);
	ck_assert_ptr_nonnull(strstr(err.msg, "the rules are not JSON, at character 6"));
	load_rules("{}", 0666, c, -1, &err);
	ck_assert_int_eq(err.code, HR_E_UNTRUSTED);
	load_rules("{\"denyOut\":[\"10.0.0.0/8\"]}", 0600, c, 0, &err);
	ck_assert_str_eq(json_object_to_json_string_ext(
			     hr_config_value(c, "sandbox.network"), JSON_C_TO_STRING_PLAIN),
	    "{\"denyOut\":[\"10.0.0.0\\/8\"]}");
	ck_assert_ptr_null(hr_config_text(c, "sandbox.network_file"));
	load_rules("{}", 0600, c, -1, &err);
	ck_assert_ptr_nonnull(strstr(err.msg, "leave one out"));
	hr_config_free(c);
}
END_TEST

static const char *const boxes[] = {"sandbox.network", NULL};

/* Rules are refused where nothing enforces them. */
START_TEST(network_elsewhere)
{
	static const char *const docker[] = {"sandbox.security.", NULL};
	struct hr_err err = {0};
	struct hr_config *c = load("[core]\n[sandbox.network]\n", NULL, 0, &err);

	ck_assert_int_eq(hr_config_heeded(c, "box", boxes, NULL, NULL, &err), 0);
	ck_assert_int_eq(hr_config_heeded(c, "docker", docker, NULL, NULL, &err), -1);
	ck_assert_str_eq(err.msg,
	    "sandbox.network is set, but the back-end docker does not support "
	    "it: unset it, or use another back-end, such as box");
	hr_config_free(c);
	c = load("[core]\n[sandbox.security]\nnetwork_mode = \"egress\"\n", NULL, 0, &err);
	ck_assert_int_eq(hr_config_heeded(c, "docker", docker, NULL, NULL, &err), -1);
	ck_assert_ptr_nonnull(strstr(err.msg, "network_mode is egress, but the back-end docker"));
	hr_config_free(c);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("config");
	TCase *tc = tcase_create("config");

	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, every_kubernetes_key);
	tcase_add_test(tc, cache_directory);
	tcase_add_loop_test(tc, mcp_lists, 0, N(mcp));
	tcase_add_test(tc, mcp_from_where);
	tcase_add_test(tc, network_table);
	tcase_add_test(tc, denied_entries);
	tcase_add_test(tc, network_file);
	tcase_add_test(tc, network_elsewhere);
	suite_add_tcase(s, tc);
	return lines_run(s);
}
