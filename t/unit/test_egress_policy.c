/* Rules of a box's network: decisions from a table, errors that name what is wrong, addresses of
 * names, and the cost of look-ups. */
#include "config.h"

#include <arpa/inet.h>
#include <check.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "egress/policy_int.h"
#include "lines.h"
#include "proto/json.h"
#include "scratch.h"

#define IDENTIFIER 64 /* maximum bytes of the name of a secret or a variable */

static char presets[512];

static struct egress_policy *
read_it(const char *text, size_t len, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;

	*err = (struct hr_err){0};
	ck_assert_msg(hr_json_decode(text, len, &o, NULL) == 0, "%s", text);
	return egress_policy_read(o, presets, err);
}

static struct egress_policy *
policy_of(const char *text)
{
	struct hr_err err;
	struct egress_policy *p = read_it(text, strlen(text), &err);

	ck_assert_msg(p != NULL, "%s: %s", text, err.msg);
	return p;
}

/* A password that a proxy cannot be sent is refused, and never cut. */
START_TEST(passwords)
{
	static const struct {
		const char *address;
		int len;
		bool good;
	} rows[] = {{"a.org:1", 255, true}, {"a.org:1", 256, false}, {"http://a.org:1", 4096, true},
	    {"http://a.org:1", 4097, false}};
	HR_PUT struct json_object *secrets = json_object_new_object();
	struct hr_err err = {0};
	struct egress_policy *p;
	char text[256], value[5000];
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		(void)snprintf(text, sizeof(text),
		    "{\"egressProxy\":{\"address\":\"%s\",\"username\":\"u\",\"password\":"
		    "\"${secrets.s}\"}}",
		    rows[i].address);
		p = policy_of(text);
		(void)memset(value, 'v', sizeof(value));
		value[rows[i].len] = '\0';
		json_object_object_add(secrets, "s", json_object_new_string(value));
		ck_assert_int_eq(egress_policy_password(p, secrets, &err) == 0, rows[i].good);
		ck_assert_ptr_null(strstr(err.msg, "vv"));
		egress_policy_free(p);
	}
	ck_assert_ptr_nonnull(strstr(err.msg, "an HTTP proxy must have at most 4096"));
	p = policy_of("{}");
	ck_assert_int_eq(egress_policy_password(p, secrets, &err), 0);
	egress_policy_free(p);
}
END_TEST

/* ---- the table ---- */

static const char *
text_at(struct json_object *list, size_t i)
{
	return hr_json_text(hr_json_entry(list, i));
}

static void
ask(const struct egress_policy *p, struct json_object *q, const char *note)
{
	static const char *const verdicts[] = {"deny", "allow", "inspect"};
	const char *host = text_at(q, 0), *method = text_at(q, 4);
	int port = (int)hr_json_int(hr_json_entry(q, 1));
	struct egress_decision d;
	struct in_addr a;

	if (method != NULL)
		egress_policy_request(p, host, port, method, text_at(q, 5), &d);
	else if (inet_pton(AF_INET, host, &a) == 1)
		egress_policy_address(p, a, port, &d);
	else
		egress_policy_name(p, host, port, &d);
	ck_assert_msg(
	    strcmp(verdicts[d.verdict], text_at(q, 2)) == 0 && strcmp(d.rule, text_at(q, 3)) == 0,
	    "%s: %s: %s by \"%s\"", note, json_object_to_json_string(q), verdicts[d.verdict],
	    d.rule);
}

START_TEST(decisions)
{
	FILE *f = lines_open("egress/decisions.jsonl");
	char *line = NULL;
	size_t cap = 0, i, n = 0;
	struct hr_err err = {0};

	while (lines_next(f, &line, &cap)) {
		HR_PUT struct json_object *o = NULL;
		struct egress_policy *p;

		ck_assert_int_eq(hr_json_decode(line, strlen(line), &o, NULL), 0);
		p = egress_policy_read(hr_json_at(o, "network"), presets, &err);
		ck_assert_msg(p != NULL, "%s: %s", line, err.msg);
		for (i = 0; i < hr_json_count(hr_json_at(o, "ask")); i++, n++)
			ask(p, hr_json_entry(hr_json_at(o, "ask"), i), hr_json_text_at(o, "note"));
		egress_policy_free(p);
	}
	ck_assert_uint_ge(n, 100);
	free(line);
	fclose(f);
}
END_TEST

/* ---- errors ---- */

#define RULE(text) "{\"rules\":{\"a.org\":[" text "]}}"
#define HEADERS(text) RULE("{\"transform\":{\"headers\":{" text "}}}")

static const struct {
	const char *text, *named;
} wrong[] = {
    {"[]", "network: must be an object"},
    {"null", "network: must be an object"},
    {"{\"allowin\":[]}", "\"allowin\" is unknown"},
    {"{\"egressProxy\":{\"address\":\"x\"}}", "egressProxy: address: must be HOST:PORT"},
    {"{\"egressProxy\":{}}", "egressProxy: must be an object with \"address\""},
    {"{\"egressProxy\":{\"address\":\"x:1\",\"tls\":true}}", "egressProxy: must be an object with"},
    {"{\"egressProxy\":{\"address\":\"x:1\",\"username\":\"u\"}}", "and \"password\" if"},
    {"{\"egressProxy\":{\"address\":\"10.0.0.0/8:1\"}}", "must be HOST:PORT"},
    {"{\"egressProxy\":{\"address\":\"*.org:1\"}}", "must be HOST:PORT"},
    {"{\"egressProxy\":{\"address\":\"https://a.org:1\"}}", "egressProxy: address: "},
    {"{\"egressProxy\":{\"address\":\"x:1\",\"username\":\"a:b\",\"password\":\"${secrets.s}\"}}",
	"egressProxy: username must be"},
    {"{\"egressProxy\":{\"address\":\"x:1\",\"username\":\"u\",\"password\":\"p\"}}",
	"egressProxy: password must be ${secrets.NAME}"},
    {"{\"egressProxy\":{\"address\":\"x:1\",\"username\":\"u\",\"password\":\"${secrets.a}b}\"}}",
	"egressProxy: password must be ${secrets.NAME}"},
    {"{\"limit\":{\"egressProxy\":{\"address\":\"x:1\"}}}", "\"egressProxy\" cannot be in a limit"},
    {"{\"maskRequestHost\":\"x\"}", "\"maskRequestHost\" is unknown"},
    {"{\"httpsPorts\":[1]}", "\"httpsPorts\" is unknown"},
    {"{\"allowOut\":\"a.org\"}", "allowOut: must be a list of strings"},
    {"{\"allowOut\":{\"a\":\"b\"}}", "allowOut: must be a list of strings"},
    {"{\"allowOut\":[\"a.org\",1]}", "allowOut: must be a list of strings"},
    {"{\"allowOut\":[\"a.org\",\"\"]}", "allowOut: entry 2, \"\": must be a name"},
    {"{\"allowOut\":[\"*\"]}", "\"allowInternetAccess\": true"},
    {"{\"allowOut\":[\"*.\"]}", "must be a name"},
    {"{\"allowOut\":[\"*.*.org\"]}", "must be a name"},
    {"{\"allowOut\":[\"a.*.org\"]}", "must be a name"},
    {"{\"allowOut\":[\"*a.org\"]}", "must be a name"},
    {"{\"allowOut\":[\"-a.org\"]}", "must be a name"},
    {"{\"allowOut\":[\"https://a.org/\"]}",
	"allowOut: entry 1, \"https://a.org/\": after the host"},
    {"{\"allowOut\":[\"a.org/x\"]}", "without scheme and path"},
    {"{\"allowOut\":[\"b\xc3\xbc"
     "cher.de\"]}",
	"xn--"},
    {"{\"allowOut\":[\"127.1\"]}", "must be a name"},
    {"{\"allowOut\":[\"1.2.3.256\"]}", "must be a name"},
    {"{\"allowOut\":[\"a.org:0\"]}", "port from 1 to 65535"},
    {"{\"allowOut\":[\"a.org:65536\"]}", "port from 1 to 65535"},
    {"{\"allowOut\":[\"a.org:\"]}", "port from 1 to 65535"},
    {"{\"allowOut\":[\"a.org:080\"]}", "port from 1 to 65535"},
    {"{\"allowOut\":[\"a.org:53\"]}", "resolver"},
    {"{\"allowOut\":[\"[::1]x\"]}", "port from 1 to 65535"},
    {"{\"allowOut\":[\"[a.org]:80\"]}", "must be a name"},
    {"{\"allowOut\":[\"[::1\"]}", "port from 1 to 65535"},
    {"{\"allowOut\":[\"10.0.0.0/33\"]}", "length"},
    {"{\"allowOut\":[\"10.0.0.0/\"]}", "length"},
    {"{\"allowOut\":[\"10.0.0.0/+8\"]}", "length"},
    {"{\"allowOut\":[\"10.0.0.0/8x\"]}", "length"},
    {"{\"allowOut\":[\"10.1.2.3/8\"]}", "must be written as 10.0.0.0/8"},
    {"{\"allowOut\":[\"fd00::1/8\"]}", "must be written as fd00::/8"},
    {"{\"allowOut\":[\"::ffff:10.0.0.1\"]}", "IPv4"},
    {"{\"denyOut\":[\"64:ff9b::a00:1\"]}", "IPv4"},
    {"{\"denyOut\":[\"2002:a00:1::/48\"]}", "IPv4"},
    {"{\"denyOut\":[\"a.org\"]}", "denyOut: entry 1, \"a.org\": must be an address or a range"},
    {"{\"denyOut\":[\"10.0.0.1:80\"]}", "without a port"},
    {"{\"allowInternetAccess\":1}", "allowInternetAccess: must be true or false"},
    {"{\"allowInternetAccess\":true,\"allow_internet_access\":false}", "twice"},
    {"{\"ports\":[]}", "at least one port"},
    {"{\"ports\":80}", "at least one port"},
    {"{\"ports\":[0]}", "from 1 to 65535"},
    {"{\"ports\":[65536]}", "from 1 to 65535"},
    {"{\"ports\":[\"80\"]}", "from 1 to 65535"},
    {"{\"ports\":[80.5]}", "from 1 to 65535"},
    {"{\"ports\":[53]}", "resolver"},
    {"{\"presets\":[\"nothing\"]}", "there is no such preset"},
    {"{\"credentials\":{\"LD_PRELOAD\":{\"secret\":\"s\",\"hosts\":[\"a.org\"]}}}",
	"programs need"},
    {"{\"credentials\":{\"PATH\":{\"secret\":\"s\",\"hosts\":[\"a.org\"]}}}", "programs need"},
    {"{\"credentials\":{\"LC_ALL\":{\"secret\":\"s\",\"hosts\":[\"a.org\"]}}}", "programs need"},
    {"{\"credentials\":{\"BASH_ENV\":{\"secret\":\"s\",\"hosts\":[\"a.org\"]}}}", "programs need"},
    {"{\"credentials\":{\"HANDRAIL_X\":{\"secret\":\"s\",\"hosts\":[\"a.org\"]}}}",
	"programs need"},
    {"{\"presets\":[\"../network/pypi\"]}", "a preset's name"},
    {"{\"dnsServers\":[\"a.org\"]}", "must be an address"},
    {"{\"dnsServers\":[\"10.0.0.0/8\"]}", "must be an address"},
    {"{\"dnsServers\":[\"1.1.1.1\",\"1.1.1.1\",\"1.1.1.1\",\"1.1.1.1\",\"1.1.1.1\",\"1.1.1.1\","
     "\"1.1.1.1\",\"1.1.1.1\",\"1.1.1.1\"]}",
	"entry 9"},
    {"{\"rules\":[]}", "rules: must be an object"},
    {"{\"rules\":{\"a.org\":{}}}", "rules: a.org: must be a list"},
    {"{\"rules\":{\"a.org\":[]}}", "at least one rule"},
    {"{\"rules\":{\"a.org:80\":[{}]}}", "without a port"},
    {"{\"rules\":{\"10.0.0.1\":[{}]}}", "must be a name"},
    {"{\"rules\":{\"a.org\":[{}],\"A.org\":[{}]}}", "twice"},
    {RULE("1"), "rule 1: must be an object"},
    {RULE("{},{\"method\":[]}"), "rule 2: method: \"method\" is unknown"},
    {RULE("{\"methods\":[]}"), "at least one string"},
    {RULE("{\"methods\":\"GET\"}"), "at least one string"},
    {RULE("{\"methods\":[\"GE T\"]}"), "must be a method"},
    {RULE("{\"methods\":[\"*\"]}"), "must be a method"},
    {RULE("{\"paths\":[\"/a\\\\b\"]}"), "a path must"},
    {RULE("{\"paths\":[\"/a#b\"]}"), "a path must"},
    {RULE("{\"paths\":[\"/a\\u007f\"]}"), "a path must"},
    {RULE("{\"paths\":[\"x\"]}"), "a path must begin with / or *"},
    {RULE("{\"paths\":[\"/a b\"]}"), "a path must"},
    {RULE("{\"paths\":[\"/a?b\"]}"), "a path must"},
    {RULE("{\"paths\":[\"/\xc3\xbc\"]}"), "a path must"},
    {RULE("{\"ports\":[]}"), "at least one port"},
    {RULE("{\"deny\":1}"), "true or false"},
    {RULE("{\"deny\":true,\"transform\":{\"headers\":{\"X\":\"y\"}}}"), "cannot have"},
    {RULE("{\"transform\":{}}"), "only \"headers\""},
    {RULE("{\"transform\":{\"headers\":{},\"body\":1}}"), "only \"headers\""},
    {HEADERS("\"Host\":\"x\""), "header Host: this header cannot"},
    {HEADERS("\"content-length\":\"1\""), "cannot be set"},
    {HEADERS("\"Transfer-Encoding\":\"x\""), "cannot be set"},
    {HEADERS("\"CONNECTION\":\"x\""), "cannot be set"},
    {HEADERS("\"te\":\"x\""), "cannot be set"},
    {HEADERS("\"X\":\"1\",\"x\":\"2\""), "set twice"},
    {HEADERS("\"X y\":\"1\""), "a header's name"},
    {HEADERS("\"X\\r\\nY\":\"1\""), "a header's name"},
    {HEADERS("\"X:\":\"1\""), "a header's name"},
    {HEADERS("\"\":\"1\""), "a header's name"},
    {HEADERS("\"X\":\"a\\nb\""), "without control characters"},
    {HEADERS("\"X\":\"a\\rb\""), "without control characters"},
    {HEADERS("\"X\":\"\\u007f\""), "without control characters"},
    {HEADERS("\"X\":\"\xc3\xbc\""), "of ASCII"},
    {HEADERS("\"X\":1"), "must be a string"},
    {HEADERS("\"X\":null"), "must be a string"},
    {HEADERS("\"X\":\"${x}\""), "${secrets.NAME}"},
    {HEADERS("\"X\":\"${secrets.a\""), "${secrets.NAME}"},
    {HEADERS("\"X\":\"${secrets.}\""), "a secret's name"},
    {HEADERS("\"X\":\"${secrets.a b}\""), "a secret's name"},
    {HEADERS("\"X\":\"${secrets.a}${\""), "${secrets.NAME}"},
    {HEADERS("\"X\":\"a\\u0000b\""), "null character"},
    {"{\"allowOut\":[\"a.org\\u0000\"]}", "null character"},
    {"{\"allow\\u0000Out\":[]}", "is unknown"},
    {"{\"credentials\":[]}", "credentials: must be an object"},
    {"{\"credentials\":{\"A\":1}}", "credentials: A: must be an object"},
    {"{\"credentials\":{\"A\":{\"secret\":\"s\"}}}", "\"hosts\""},
    {"{\"credentials\":{\"A\":{\"secret\":\"s\",\"hosts\":[]}}}", "at least one host"},
    {"{\"credentials\":{\"A\":{\"secret\":\"s\",\"hosts\":[\"a.org\"],\"x\":1}}}", "only"},
    {"{\"credentials\":{\"A\":{\"secret\":\"s s\",\"hosts\":[\"a.org\"]}}}", "a secret's name"},
    {"{\"credentials\":{\"A\":{\"secret\":\"s\",\"hosts\":[\"10.0.0.1\"]}}}", "must be a name"},
    {"{\"credentials\":{\"1A\":{\"secret\":\"s\",\"hosts\":[\"a.org\"]}}}", "a variable's name"},
    {"{\"credentials\":{\"A=\":{\"secret\":\"s\",\"hosts\":[\"a.org\"]}}}", "a variable's name"},
};

START_TEST(errors)
{
	struct hr_err err;
	struct egress_policy *p = read_it(wrong[_i].text, strlen(wrong[_i].text), &err);

	ck_assert_msg(p == NULL, "%s was accepted", wrong[_i].text);
	ck_assert_msg(err.code == HR_E_INVAL, "%d %s", err.code, err.msg);
	ck_assert_msg(strstr(err.msg, wrong[_i].named) != NULL, "%s: %s", wrong[_i].text, err.msg);
	ck_assert_msg(strncmp(err.msg, "network: ", 9) == 0, "%s", err.msg);
}
END_TEST

START_TEST(long_entries)
{
	static const char *const ends[] = {"", ":22"};
	struct egress_decision d;
	struct egress_policy *p;
	struct hr_err err;
	char name[300];
	size_t i, n;

	for (i = 0; i < 2; i++)
		for (n = 40; n < 60; n++) {
			HR_BUF(b, 4096);

			memset(name, 'a', n);
			(void)snprintf(name + n, sizeof(name) - n, ".org");
			hr_buf_addf(&b, "{\"allowOut\":[\"%s%s\"]}", name, ends[i]);
			p = policy_of(hr_buf_str(&b));
			egress_policy_name(p, name, i == 0 ? 443 : 22, &d);
			ck_assert_int_eq(d.verdict, EGRESS_ALLOW);
			egress_policy_free(p);
			hr_buf_reset(&b);
			memset(name, '1', n);
			hr_buf_addf(&b, "{\"allowOut\":[\"%.*s\"]}", (int)n, name);
			ck_assert_ptr_null(read_it(b.p, b.len, &err));
		}
}
END_TEST

START_TEST(bounds)
{
	char name[IDENTIFIER + 2], text[512];
	struct egress_policy *p;
	struct hr_err err;
	size_t n;

	p = policy_of("{\"ports\":[1,65535],\"allowOut\":[\"a.org\",\"a.org:1\",\"a.org:65535\"]}");
	egress_policy_free(p);
	for (n = IDENTIFIER; n <= IDENTIFIER + 1; n++) {
		memset(name, 'a', n);
		name[n] = '\0';
		(void)snprintf(text, sizeof(text),
		    "{\"rules\":{\"a.org\":[{\"transform\":{\"headers\":{\"X\":\"${secrets.%s}\"}}}"
		    "]}}",
		    name);
		p = read_it(text, strlen(text), &err);
		ck_assert((p != NULL) == (n == IDENTIFIER));
		egress_policy_free(p);
		(void)snprintf(text, sizeof(text),
		    "{\"credentials\":{\"%s\":{\"secret\":\"%s\",\"hosts\":[\"a.org\"]}}}", name,
		    name);
		p = read_it(text, strlen(text), &err);
		ck_assert((p != NULL) == (n == IDENTIFIER));
		egress_policy_free(p);
	}
}
END_TEST

static const struct {
	const char *text, *named; /* NULL: no error */
} files[] = {
    {"{\"description\":\"x\",\"allowOut\":[\"a.org\"]}", NULL},
    {"", "only"},
    {"{", "only"},
    {"[1,2]", "only"},
    {"{\"description\":\"x\"}", "only"},
    {"{\"allowOut\":[\"a.org\"]}", "only"},
    {"{\"description\":\"x\",\"allow\":[\"a.org\"]}", "only"},
    {"{\"text\":\"x\",\"allowOut\":[\"a.org\"]}", "only"},
    {"{\"description\":1,\"allowOut\":[\"a.org\"]}", "only"},
    {"{\"description\":\"x\",\"allowOut\":[\"a.org\"],\"denyOut\":[]}", "only"},
    {"{\"description\":\"x\",\"allowOut\":[\"a\\u0000\"]}", "only"},
    {"{\"description\":\"x\",\"allowOut\":\"a.org\"}", "try.json: must be a list"},
    {"{\"description\":\"x\",\"allowOut\":[\"*\"]}", "try.json: entry 1, \"*\": must not"},
};

START_TEST(preset_files)
{
	HR_PUT struct json_object *o = json_tokener_parse("{\"presets\":[\"try\"]}");
	struct hr_err err = {0};
	struct egress_policy *p;
	char path[64];

	(void)snprintf(path, sizeof(path), "%s/try.json", scratch);
	ck_assert_int_eq(
	    hr_path_write(path, files[_i].text, strlen(files[_i].text), 0600, NULL), 0);
	p = egress_policy_read(o, scratch, &err);
	ck_assert_msg((p != NULL) == (files[_i].named == NULL), "%s", files[_i].text);
	ck_assert_msg(p != NULL || strstr(err.msg, files[_i].named) != NULL, "%s", err.msg);
	egress_policy_free(p);
}
END_TEST

START_TEST(presets_unavailable)
{
	HR_PUT struct json_object *o = json_tokener_parse("{\"presets\":[\"pypi\"]}");
	struct hr_err err = {0};

	ck_assert_ptr_null(egress_policy_read(o, NULL, &err));
	ck_assert_msg(
	    strstr(err.msg, "presets: entry 1, \"pypi\": presets are not available") != NULL, "%s",
	    err.msg);
}
END_TEST

START_TEST(all_presets)
{
	static const char *const names[] = {"crates", "debian", "github", "golang", "npm", "pypi"};
	struct egress_policy *p;
	char text[64];
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		(void)snprintf(text, sizeof(text), "{\"presets\":[\"%s\"]}", names[i]);
		p = policy_of(text);
		ck_assert_uint_ge(p->n, 2);
		egress_policy_free(p);
	}
}
END_TEST

/* ---- names ---- */

START_TEST(names)
{
	static const struct {
		const char *text, *name; /* NULL: none */
	} rows[] = {{"a", "a"}, {"A.b-C_d.E.", "a.b-c_d.e"},
	    {"xn--bcher-kva.de", "xn--bcher-kva.de"}, {"_dmarc.a.org", "_dmarc.a.org"},
	    {"1.a", "1.a"}, {"a.1b", "a.1b"}, {"a.0xg", "a.0xg"}, {"a.0a5", "a.0a5"},
	    {"a.1x2", "a.1x2"}, {"", NULL}, {".", NULL}, {"a..", NULL}, {".a", NULL},
	    {"a..b", NULL}, {"a b", NULL}, {"a/b", NULL}, {"a:1", NULL}, {"*.a", NULL},
	    {"a\n", NULL}, {"a\xc3\xbc", NULL}, {"-a", NULL}, {"a.1", NULL}, {"1.2.3.4", NULL},
	    {"a.0x1F.", NULL}, {"0x", NULL}, {"[::1]", NULL}, {"a\\b", NULL}, {"a%2eb", NULL}};
	char ret[EGRESS_NAME_MAX + 1], longest[300];
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		bool is = egress_name(rows[i].text, strlen(rows[i].text), ret);

		ck_assert_msg(is == (rows[i].name != NULL), "%s", rows[i].text);
		ck_assert_msg(!is || strcmp(ret, rows[i].name) == 0, "%s: %s", rows[i].text, ret);
	}
	ck_assert(!egress_name("a\0b", 3, ret));
	memset(longest, 'a', sizeof(longest));
	ck_assert(egress_name(longest, 63, ret) && !egress_name(longest, 64, ret));
	for (i = 49; i < sizeof(longest); i += 50)
		longest[i] = '.';
	ck_assert(egress_name(longest, 253, ret) && !egress_name(longest, 254, ret));
	longest[253] = '.';
	ck_assert(egress_name(longest, 254, ret));
	ck_assert_uint_eq(strlen(ret), 253);
}
END_TEST

/* ---- addresses of names ---- */

static struct sockaddr_storage
address_of(const char *text, int port)
{
	struct sockaddr_storage a = {0};
	struct sockaddr_in *in = (struct sockaddr_in *)&a;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&a;

	a.ss_family = strchr(text, ':') != NULL ? AF_INET6 : AF_INET;
	in->sin_port = htons((uint16_t)port); /* at the same place in both */
	ck_assert_int_eq(
	    inet_pton(a.ss_family, text,
		a.ss_family == AF_INET ? (void *)&in->sin_addr : (void *)&in6->sin6_addr),
	    1);
	return a;
}

static bool
result(const struct egress_policy *p, const char *text, int port)
{
	struct sockaddr_storage a = address_of(text, port);

	return egress_policy_result(p, (struct sockaddr *)&a);
}

static bool
named(const struct egress_policy *p, const char *text, int port)
{
	struct sockaddr_storage a = address_of(text, port);

	return egress_policy_names(p, (struct sockaddr *)&a);
}

START_TEST(results_public)
{
	/* the neighbours of each range, and both ends of it */
	static const char *const good[] = {"1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255",
	    "100.128.0.0", "126.255.255.255", "128.0.0.0", "168.63.129.15", "168.63.129.17",
	    "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "191.255.255.255",
	    "192.0.1.0", "192.0.1.255", "192.0.3.0", "192.88.98.255", "192.88.100.0",
	    "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "198.51.99.255",
	    "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255",
	    "2000::", "2001:200::", "2001:db7:ffff::", "2001:db9::", "2003::", "2606:4700::1111",
	    "3ffe:ffff::", "3fff:1000::", "3fff:ffff::", "::ffff:93.184.216.34",
	    "64:ff9b::93.184.216.34", "2002:5db8:d822::1"};
	static const char *const not [] = {"0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255",
	    "100.64.0.0", "100.127.255.255", "127.0.0.0", "127.0.0.1", "127.255.255.255",
	    "169.254.0.0", "169.254.169.254", "169.254.255.255", "168.63.129.16", "172.16.0.0",
	    "172.31.255.255", "192.0.0.0", "192.0.0.255", "192.0.2.0", "192.0.2.255", "192.88.99.0",
	    "192.88.99.255", "192.168.0.0", "192.168.255.255", "198.18.0.0", "198.19.255.255",
	    "198.51.100.0", "198.51.100.255", "203.0.113.0", "203.0.113.255", "224.0.0.0",
	    "239.255.255.255", "240.0.0.0", "255.255.255.255", "::", "::1",
	    "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fc00::1", "fd00:ec2::254", "fe80::1",
	    "fec0::1", "ff02::1", "100::1", "2001::", "2001:0:5ef5:79fd::1",
	    "2001:1ff:ffff::", "2001:db8::", "2001:db8:ffff::", "3fff::", "3fff:fff:ffff::",
	    "4000::", "8000::", "::10.0.0.1", "::8.8.8.8", "::ffff:10.0.0.1", "::ffff:127.0.0.1",
	    "::ffff:0.0.0.0", "::ffff:169.254.169.254", "64:ff9b::10.0.0.1", "64:ff9b::7f00:1",
	    "64:ff9b:1::808:808", "64:ff9b::1:808:808", "2002:a00:1::1", "2002:7f00:1::"};
	struct egress_policy *p = policy_of("{\"allowInternetAccess\":true}");
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(*good); i++)
		ck_assert_msg(result(p, good[i], 443), "%s", good[i]);
	for (i = 0; i < sizeof(not ) / sizeof(*not ); i++)
		ck_assert_msg(!result(p, not [i], 443), "%s", not [i]);
	egress_policy_free(p);
}
END_TEST

START_TEST(names_addresses)
{
	struct egress_policy *p =
	    policy_of("{\"allowInternetAccess\":true,\"allowOut\":[\"a.org\",\"93.184.0.0/16\","
		      "\"8.8.8.8:22\",\"2606::/16\",\"0.0.0.0/0\",\"::/0\"]}");
	struct sockaddr unix_address = {.sa_family = AF_UNIX};

	ck_assert(named(p, "93.184.216.40", 443) && named(p, "::ffff:93.184.216.40", 443));
	ck_assert(named(p, "8.8.8.8", 22) && !named(p, "8.8.8.8", 443));
	ck_assert(named(p, "2606:4700::1", 443));
	ck_assert(!named(p, "93.185.0.1", 443) && !named(p, "2607::1", 443)); /* by /0 only */
	ck_assert(!egress_policy_names(p, &unix_address));
	egress_policy_free(p);
}
END_TEST

START_TEST(results_named)
{
	struct egress_policy *p =
	    policy_of("{\"allowOut\":[\"a.org\",\"10.1.0.0/16\",\"127.0.0.1:8080\",\"fd00::/8\","
		      "\"[::1]:81\",\"0.0.0.0/0\"],\"denyOut\":[\"10.1.2.0/24\",\"10.9.0.0/16\","
		      "\"93.0.0.0/8\",\"2606::/16\"]}");
	struct sockaddr unix_address = {.sa_family = AF_UNIX};

	ck_assert(result(p, "10.1.3.4", 22));  /* the range has no port: the name's rule has */
	ck_assert(result(p, "10.1.2.4", 443)); /* allow beats deny */
	ck_assert(result(p, "::ffff:10.1.3.4", 443) && result(p, "64:ff9b::a01:304", 443));
	ck_assert(result(p, "2002:a01:304::5", 443));
	ck_assert(!result(p, "10.2.0.1", 443) && !result(p, "10.9.0.1", 443));
	ck_assert(result(p, "127.0.0.1", 8080) && result(p, "127.0.0.1", 0));
	ck_assert(result(p, "::ffff:127.0.0.1", 8080) && result(p, "64:ff9b::7f00:1", 8080));
	ck_assert(!result(p, "127.0.0.1", 443) && !result(p, "127.0.0.2", 8080));
	ck_assert(result(p, "fd12::1", 443) && !result(p, "fc00::1", 443));
	ck_assert(result(p, "::1", 81) && !result(p, "::1", 80));
	ck_assert(result(p, "93.184.216.34", 443)); /* by 0.0.0.0/0 */
	ck_assert(!result(p, "2606:4700::1", 443) && result(p, "2607::1", 443));
	ck_assert(!egress_policy_result(p, &unix_address));
	ck_assert_uint_eq(p->n, 10);
	egress_policy_free(p);

	p = policy_of("{\"allowOut\":[\"a.org\"],\"denyOut\":[\"0.0.0.0/0\",\"::/0\","
		      "\"93.184.0.0/16\"]}");
	ck_assert(result(p, "1.2.3.4", 443) && !result(p, "2a00::1", 443));
	ck_assert(!result(p, "93.184.216.34", 443) && !result(p, "::ffff:93.184.216.34", 443));
	ck_assert(!result(p, "10.0.0.1", 443));
	egress_policy_free(p);
}
END_TEST

/* ---- what others ask ---- */

static int
note_rule(void *arg, const struct egress_http_rule *r)
{
	struct hr_buf *b = (struct hr_buf *)arg;

	hr_buf_addf(b, "%s|%s|%s|%s|%s\n", r->spelled, r->deny ? "deny" : "allow",
	    r->methods != NULL ? r->methods[0] : "", r->paths != NULL ? r->paths[0] : "",
	    r->headers != NULL ? r->headers[0] : "");
	return 0;
}

static int
note_credential(void *arg, const struct egress_credential *c)
{
	hr_buf_addf((struct hr_buf *)arg, "%s=%s\n", c->variable, c->secret);
	return 0;
}

static int
note_secret(void *arg, const char *secret)
{
	hr_buf_addf((struct hr_buf *)arg, "%s\n", secret);
	return 0;
}

static int
stop(void *arg, const struct egress_credential *c)
{
	(void)c;
	return ++*(int *)arg == 2 ? -7 : 0;
}

#define HTTP                                                                                       \
	"{\"allowOut\":[\"*.c.org\",\"10.1.0.0/16:8080\"],\"ports\":[80,443,5000],\"dnsServers\":" \
	"[\"127.0.0.1:5353\",\"[::1]:53\"],\"rules\":{\"a.org\":[{\"methods\":[\"get\"],"          \
	"\"paths\":[\"/x*\"],\"transform\":{\"headers\":{\"X-Key\":\"k ${secrets.one}\"}}},"       \
	"{\"ports\":[81],\"methods\":[\"PUT\"]},{\"paths\":[\"/y\"],\"deny\":true}]},"             \
	"\"credentials\":{\"T\":{\"secret\":\"two\",\"hosts\":[\"a.org\",\"*.c.org\"]},"           \
	"\"U\":{\"secret\":\"one\",\"hosts\":[\"*.org\"]}}}"

START_TEST(http)
{
	struct egress_policy *p = policy_of(HTTP);
	HR_BUF(b, 4096);

	ck_assert_int_eq(egress_policy_http(p, "A.org", 443, note_rule, note_credential, &b), 0);
	ck_assert_str_eq(hr_buf_str(&b), "rules a.org 1|allow|GET|/x*|X-Key: k ${secrets.one}\n"
					 "rules a.org 3|deny||/y|\nT=two\nU=one\n");
	hr_buf_reset(&b);
	egress_policy_http(p, "a.org", 81, note_rule, note_credential, &b);
	ck_assert_str_eq(hr_buf_str(&b), "rules a.org 2|allow|PUT||\n");
	hr_buf_reset(&b);
	egress_policy_http(p, "b.c.org", 443, note_rule, note_credential, &b);
	ck_assert_str_eq(hr_buf_str(&b), "allowOut *.c.org|allow|||\nT=two\nU=one\n");
	hr_buf_reset(&b);
	egress_policy_http(p, "b.c.org", 80, note_rule, note_credential, &b);
	egress_policy_http(p, "b.com", 443, note_rule, note_credential, &b);
	ck_assert_str_eq(hr_buf_str(&b), "");
	egress_policy_free(p);
}
END_TEST

START_TEST(lists)
{
	struct egress_policy *p = policy_of(HTTP);
	int ports[EGRESS_PORTS_MAX + 2], calls = 0;
	HR_BUF(b, 4096);

	egress_policy_secrets(p, note_secret, &b);
	egress_policy_credentials(p, note_credential, &b);
	ck_assert_str_eq(hr_buf_str(&b), "one\ntwo\nT=two\nU=one\n");
	ck_assert_int_eq(egress_policy_credentials(p, stop, &calls), -7);
	ck_assert_int_eq(calls, 2);
	ck_assert_uint_eq(egress_policy_ports(p, ports), 5);
	ck_assert_int_eq(ports[0], 80);
	ck_assert_int_eq(ports[1], 443);
	ck_assert_int_eq(ports[2] + ports[3] + ports[4], 8080 + 5000 + 81);
	ck_assert_str_eq(egress_policy_servers(p)[0], "127.0.0.1:5353");
	ck_assert_str_eq(egress_policy_servers(p)[1], "[::1]:53");
	ck_assert_ptr_null(egress_policy_servers(p)[2]);
	egress_policy_free(p);
	p = policy_of("{}");
	ck_assert_ptr_null(egress_policy_servers(p));
	ck_assert_uint_eq(egress_policy_ports(p, ports), 2);
	egress_policy_free(p);
	egress_policy_free(NULL);
}
END_TEST

START_TEST(repeated)
{
	struct egress_policy *p = policy_of(
	    "{\"allowOut\":[\"a.org\",\"A.org.\",\"a.org:22\",\"a.org:22\"],\"credentials\":{"
	    "\"T\":{\"secret\":\"s\",\"hosts\":[\"a.org\",\"a.org\"]},"
	    "\"U\":{\"secret\":\"s\",\"hosts\":[\"a.org\",\"a.org:81\"]}}}");
	HR_BUF(b, 4096);

	egress_policy_explain(p, &b);
	ck_assert_str_eq(strstr(hr_buf_str(&b), "allowOut"),
	    "allowOut a.org\nallowOut a.org:22\ncredentials T: a.org gets the secret s\n"
	    "credentials U: a.org gets the secret s\ncredentials U: a.org:81 gets the secret s\n");
	hr_buf_reset(&b);
	egress_policy_http(p, "a.org", 443, note_rule, note_credential, &b);
	egress_policy_http(p, "a.org", 81, note_rule, note_credential, &b);
	egress_policy_secrets(p, note_secret, &b);
	ck_assert_str_eq(hr_buf_str(&b),
	    "allowOut a.org|allow|||\nT=s\nU=s\ncredentials U: a.org:81|allow|||\nU=s\ns\n");
	egress_policy_free(p);
}
END_TEST

START_TEST(explained)
{
	struct egress_policy *p = policy_of(
	    "{\"presets\":[\"pypi\"],\"denyOut\":[\"10.0.0.0/8\"],\"dnsServers\":[\"1.1.1.1\"],"
	    "\"rules\":{\"*.a.org\":[{\"methods\":[\"GET\",\"PUT\"],\"paths\":[\"/x\"],\"ports\":"
	    "[81],\"transform\":{\"headers\":{\"X-Key\":\"literal\",\"Y\":\"z\"}}},{\"deny\":true}"
	    "]},\"credentials\":{\"T\":{\"secret\":\"two\",\"hosts\":[\"*.b.org:444\"]}}}");
	HR_BUF(b, 4096);

	egress_policy_explain(p, &b);
	ck_assert_str_eq(hr_buf_str(&b),
	    "what no line below allows is refused\n"
	    "ports of entries without a port: 80, 443\n"
	    "dnsServers 1.1.1.1\n"
	    "preset pypi: pypi.org\n"
	    "preset pypi: files.pythonhosted.org\n"
	    "denyOut 10.0.0.0/8\n"
	    "rules *.a.org 1: allow GET, PUT requests for /x on port 81, with the header X-Key, Y\n"
	    "rules *.a.org 2: refuse every request\n"
	    "credentials T: *.b.org:444 gets the secret two\n");
	egress_policy_free(p);
}
END_TEST

/* ---- size ---- */

static struct egress_policy *
many(size_t n, struct hr_err *err)
{
	HR_BUF(b, 16 << 20);
	size_t i;

	hr_buf_adds(&b, "{\"allowOut\":[\"a.org\"");
	for (i = 1; i < n; i++)
		hr_buf_addf(
		    &b, i % 2 == 0 ? ",\"h%zu.example.com\"" : ",\"*.w%zu.example.com\"", i);
	hr_buf_adds(&b, "]}");
	return read_it(b.p, b.len, err);
}

/* Returns the number of nodes in the fullest bucket: the maximum of comparisons in a look-up. */
static unsigned
fullest(const struct egress_policy *p)
{
	const struct policy_node *n;
	unsigned most = 0, chain;
	size_t i;

	for (i = 0; i < p->nbuckets; i++) {
		chain = 0;
		for (n = p->buckets[i]; n != NULL; n = n->next)
			chain++;
		most = chain > most ? chain : most;
	}
	return most;
}

START_TEST(lookups_do_not_grow)
{
	static const size_t sizes[] = {1000, POLICY_ENTRIES_MAX};
	struct egress_policy *p;
	struct egress_decision d;
	struct hr_err err;
	size_t i;

	for (i = 0; i < 2; i++) {
		p = many(sizes[i], &err);
		ck_assert_msg(p != NULL, "%s", err.msg);
		ck_assert_uint_eq(p->n, sizes[i]);
		ck_assert_uint_ge(p->nbuckets, p->n);
		ck_assert_uint_le(fullest(p), 12);
		egress_policy_name(p, "h998.example.com", 443, &d);
		ck_assert_str_eq(d.rule, "allowOut h998.example.com");
		egress_policy_name(p, "x.w999.example.com", 443, &d);
		ck_assert_str_eq(d.rule, "allowOut *.w999.example.com");
		egress_policy_name(p, "x.example.com", 443, &d);
		ck_assert_int_eq(d.verdict, EGRESS_DENY);
		egress_policy_free(p);
	}
	ck_assert_ptr_null(many(POLICY_ENTRIES_MAX + 1, &err));
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
	ck_assert_msg(strstr(err.msg, "at most 100000 entries") != NULL, "%s", err.msg);
}
END_TEST

START_TEST(colliding_names)
{
	static const char *const ends[] = {",\"%s\"]}", "],\"rules\":{\"%s\":[{}]}}",
	    "],\"credentials\":{\"T\":{\"secret\":\"s\",\"hosts\":[\"%s\"]}}}"};
	struct egress_policy *p = policy_of("{}"), *whole;
	struct policy_node *n = NULL;
	struct hr_err err = {0};
	HR_BUF(b, 1 << 20);
	char key[32];
	uint64_t h;
	size_t i, found, last;

	hr_buf_adds(&b, "{\"allowOut\":[\"a\"");
	for (i = found = 0; found < POLICY_CHAIN_MAX + 1; i++) {
		(void)snprintf(key, sizeof(key), "k%zu", i);
		h = hr_hash(HR_HASH, key, strlen(key));
		if (((h ^ h >> 32) & 63) != 5)
			continue;
		n = policy_node(p, key, strlen(key), &err);
		hr_buf_addf(&b, ",\"%s\"", key);
		ck_assert_msg((n != NULL) == (++found <= POLICY_CHAIN_MAX), "%zu", found);
	}
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
	last = b.len - strlen(key) - 3; /* `key` is one too many: as an entry, and as a host */
	for (i = 0; i < 3; i++) {
		b.len = last;
		hr_buf_addf(&b, ends[i], key);
		whole = read_it(b.p, b.len, &err);
		ck_assert_ptr_null(whole);
		ck_assert_msg(
		    strstr(err.msg, "chosen to slow it down") != NULL, "%s: %s", b.p, err.msg);
	}
	egress_policy_free(p);
}
END_TEST

START_TEST(ports_are_bounded)
{
	HR_BUF(b, 1 << 16);
	struct egress_policy *p;
	int ports[EGRESS_PORTS_MAX + 2], i;
	struct hr_err err;

	hr_buf_adds(&b, "{\"allowOut\":[\"a.org:80\",\"a.org:443\"");
	for (i = 0; i < EGRESS_PORTS_MAX; i++)
		hr_buf_addf(&b, ",\"a.org:%d\",\"b.org:%d\"", 1000 + i, 1000 + i);
	hr_buf_adds(&b, "]}");
	p = read_it(b.p, b.len, &err);
	ck_assert_msg(p != NULL, "%s", err.msg);
	ck_assert_uint_eq(egress_policy_ports(p, ports), EGRESS_PORTS_MAX + 2);
	ck_assert_int_eq(ports[EGRESS_PORTS_MAX + 1], 1000 + EGRESS_PORTS_MAX - 1);
	egress_policy_free(p);
	b.len -= 2;
	hr_buf_adds(&b, ",\"c.org:999\"]}");
	ck_assert_ptr_null(read_it(b.p, b.len, &err));
	ck_assert_msg(strstr(err.msg, "at most 64 different ports") != NULL, "%s", err.msg);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("egress_policy");
	TCase *t = tcase_create("rules");

	(void)snprintf(presets, sizeof(presets), "%s/conf/network",
	    getenv("srcdir") != NULL ? getenv("srcdir") : ".");
	tcase_add_test(t, passwords);
	tcase_add_test(t, decisions);
	tcase_add_loop_test(t, errors, 0, (int)(sizeof(wrong) / sizeof(*wrong)));
	tcase_add_test(t, long_entries);
	tcase_add_test(t, bounds);
	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_loop_test(t, preset_files, 0, (int)(sizeof(files) / sizeof(*files)));
	tcase_add_test(t, presets_unavailable);
	tcase_add_test(t, all_presets);
	tcase_add_test(t, names);
	tcase_add_test(t, results_public);
	tcase_add_test(t, names_addresses);
	tcase_add_test(t, results_named);
	tcase_add_test(t, http);
	tcase_add_test(t, lists);
	tcase_add_test(t, repeated);
	tcase_add_test(t, explained);
	tcase_add_test(t, lookups_do_not_grow);
	tcase_add_test(t, colliding_names);
	tcase_add_test(t, ports_are_bounded);
	suite_add_tcase(s, t);
	return lines_run(s);
}
