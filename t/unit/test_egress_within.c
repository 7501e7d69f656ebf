/* Comparison of two policies: by a table, and of random ones by asking both about each kind of
 * target. */
#include "config.h"

#include <arpa/inet.h>
#include <check.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clean.h"
#include "egress/policy.h"
#include "proto/json.h"

static struct egress_policy *
policy_of(const char *text)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_err err = {0};
	struct egress_policy *p;

	ck_assert_msg(hr_json_decode(text, strlen(text), &o, NULL) == 0, "%s", text);
	p = egress_policy_read(o, NULL, &err);
	ck_assert_msg(p != NULL, "%s: %s", text, err.msg);
	return p;
}

/* named: a part of the error; NULL: the first is within the second */
static const struct {
	const char *p, *most, *named;
} pairs[] = {
    {"{}", "{}", NULL},
    {"{'allowOut':['a.org']}", "{}", "allowOut a.org asks for more, at port 80"},
    {"{'allowOut':['a.org']}", "{'allowOut':['a.org']}", NULL},
    {"{'allowOut':['A.ORG.']}", "{'allowOut':['a.org']}", NULL},
    {"{'allowOut':['b.a.org']}", "{'allowOut':['a.org']}", "allowOut b.a.org"},
    /* wildcards */
    {"{'allowOut':['b.a.org']}", "{'allowOut':['*.a.org']}", NULL},
    {"{'allowOut':['c.b.a.org']}", "{'allowOut':['*.a.org']}", NULL},
    {"{'allowOut':['a.org']}", "{'allowOut':['*.a.org']}", "allowOut a.org"},
    {"{'allowOut':['xa.org']}", "{'allowOut':['*.a.org']}", "allowOut xa.org"},
    {"{'allowOut':['*.a.org']}", "{'allowOut':['a.org']}", "allowOut *.a.org"},
    {"{'allowOut':['*.a.org']}", "{'allowOut':['b.a.org','c.a.org']}", "allowOut *.a.org"},
    {"{'allowOut':['*.b.a.org']}", "{'allowOut':['*.a.org']}", NULL},
    {"{'allowOut':['*.a.org']}", "{'allowOut':['*.b.a.org']}", "allowOut *.a.org"},
    {"{'allowOut':['*.a.org']}", "{'allowInternetAccess':true}", NULL},
    {"{'allowInternetAccess':true}", "{'allowInternetAccess':true}", NULL},
    {"{'allowInternetAccess':true}", "{'allowOut':['*.org','*.com']}", "allowInternetAccess"},
    {"{'allowInternetAccess':true}", "{'allowOut':['0.0.0.0/0']}", NULL},
    {"{'allowInternetAccess':true}", "{'allowOut':['0.0.0.0/1','128.0.0.0/1']}",
	"allowInternetAccess"},
    {"{'allowInternetAccess':true,'denyOut':['0.0.0.0/0']}", "{}", NULL},
    {"{}", "{'allowInternetAccess':true}", NULL},
    /* ports */
    {"{'allowOut':['a.org:22']}", "{'allowOut':['a.org']}",
	"allowOut a.org:22 asks for more, at port 22"},
    {"{'allowOut':['a.org:443']}", "{'allowOut':['a.org']}", NULL},
    {"{'allowOut':['a.org']}", "{'allowOut':['a.org:443']}", "at port 80"},
    {"{'allowOut':['a.org'],'ports':[443]}", "{'allowOut':['a.org:443']}", NULL},
    {"{'allowOut':['a.org'],'ports':[443,8443]}", "{'allowOut':['a.org']}", "port 8443"},
    {"{'allowOut':['a.org'],'ports':[8443]}", "{'allowOut':['*.org:8443']}", NULL},
    {"{'allowOut':['a.org:22']}", "{'allowInternetAccess':true}", "allowOut a.org:22"},
    {"{'allowOut':['a.org:22']}", "{'allowInternetAccess':true,'ports':[22]}", NULL},
    {"{'allowOut':['a.org'],'ports':[22]}", "{'allowOut':['a.org:22','*.org']}", NULL},
    {"{'allowInternetAccess':true,'ports':[22]}", "{'allowInternetAccess':true}",
	"allowInternetAccess asks for more, at port 22"},
    /* ranges */
    {"{'allowOut':['8.8.8.8']}", "{'allowOut':['8.8.8.0/24']}", NULL},
    {"{'allowOut':['8.8.8.0/24']}", "{'allowOut':['8.8.8.8']}", "allowOut 8.8.8.0/24"},
    {"{'allowOut':['8.8.8.0/24']}", "{'allowOut':['8.8.8.0/25','8.8.8.128/25']}", NULL},
    {"{'allowOut':['8.8.8.0/24']}", "{'allowOut':['8.8.8.0/25','8.8.8.128/26']}",
	"allowOut 8.8.8.0/24"},
    {"{'allowOut':['8.8.8.0/24']}", "{'allowOut':['8.8.8.0/25','8.8.8.129','8.8.8.130']}",
	"allowOut 8.8.8.0/24"},
    {"{'allowOut':['8.8.8.0/24:22']}", "{'allowOut':['8.8.8.0/24']}", "at port 22"},
    {"{'allowOut':['8.8.8.0/24']}", "{'allowInternetAccess':true}", NULL},
    {"{'allowOut':['10.0.0.0/8']}", "{'allowInternetAccess':true}", "allowOut 10.0.0.0/8"},
    {"{'allowOut':['10.1.0.0/16']}", "{'allowOut':['10.0.0.0/8']}", NULL},
    {"{'allowOut':['10.0.0.0/8']}", "{'allowOut':['8.0.0.0/6']}", "allowOut 10.0.0.0/8"},
    {"{'allowOut':['8.0.0.0/6']}", "{'allowOut':['8.0.0.0/7','11.0.0.0/8']}", NULL},
    {"{'allowOut':['8.0.0.0/6']}", "{'allowOut':['8.0.0.0/7']}", "allowOut 8.0.0.0/6"},
    {"{'allowOut':['255.255.255.255']}", "{'allowOut':['240.0.0.0/4']}", NULL},
    {"{'allowOut':['240.0.0.0/4']}", "{'allowOut':['255.255.255.255']}", "allowOut 240.0.0.0/4"},
    {"{'allowOut':['0.0.0.0/0:22']}", "{'allowInternetAccess':true,'ports':[22]}", NULL},
    {"{'allowOut':['0.0.0.0/0:22']}", "{'allowOut':['0.0.0.0/1:22','128.0.0.0/2:22']}",
	"allowOut 0.0.0.0/0:22"},
    /* what denyOut takes away */
    {"{'allowInternetAccess':true}", "{'allowInternetAccess':true,'denyOut':['8.8.8.0/24']}",
	"allowInternetAccess"},
    {"{'allowInternetAccess':true,'denyOut':['8.8.0.0/16']}",
	"{'allowInternetAccess':true,'denyOut':['8.8.8.0/24']}", NULL},
    {"{'allowInternetAccess':true,'denyOut':['8.8.8.0/25']}",
	"{'allowInternetAccess':true,'denyOut':['8.8.8.0/24']}", "allowInternetAccess"},
    {"{'allowOut':['8.8.8.8']}", "{'allowInternetAccess':true,'denyOut':['8.8.8.0/24']}",
	"allowOut 8.8.8.8"},
    {"{'allowOut':['8.8.8.8']}",
	"{'allowInternetAccess':true,'denyOut':['8.8.8.0/24'],'allowOut':['8.8.8.8']}", NULL},
    /* addresses that names lead to */
    {"{'allowOut':['a.org']}", "{'allowOut':['a.org'],'denyOut':['8.8.8.0/24']}",
	"names may lead to 8.8.8.0"},
    {"{'allowOut':['a.org'],'denyOut':['8.8.8.0/24']}",
	"{'allowOut':['a.org'],'denyOut':['8.8.8.0/24']}", NULL},
    {"{'allowOut':['9.9.9.9']}", "{'allowOut':['9.9.9.9'],'denyOut':['8.8.8.0/24']}", NULL},
    {"{'allowOut':['a.org']}", "{'allowOut':['a.org'],'denyOut':['2a00::/16']}",
	"names may lead to 2a00::"},
    {"{'allowOut':['a.org']}", "{'allowOut':['a.org'],'denyOut':['2003::/16']}",
	"names may lead to 2003::"},
    {"{'allowOut':['a.org']}", "{'allowOut':['a.org'],'denyOut':['2002::/15']}",
	"names may lead to 2003::"},
    {"{'allowOut':['a.org','fd00::/8']}", "{'allowOut':['a.org']}", "names may lead to fd00::"},
    {"{'allowOut':['a.org','fd12::/16']}", "{'allowOut':['a.org','fd00::/8']}", NULL},
    {"{'allowOut':['a.org','10.0.0.1:444']}", "{'allowOut':['a.org']}", "allowOut 10.0.0.1:444"},
    /* rules for requests */
    {"{'rules':{'a.org':[{'methods':['GET']}]}}", "{'allowOut':['a.org']}", NULL},
    {"{'rules':{'a.org':[{'methods':['GET']}]}}", "{'allowOut':['b.org']}", "rules a.org 1"},
    {"{'rules':{'a.org':[{'ports':[22]}]}}", "{'allowOut':['a.org']}",
	"rules a.org 1 asks for more, at port 22"},
    {"{'rules':{'a.org':[{'deny':true}]}}", "{}", NULL},
    {"{'rules':{'*.a.org':[{'deny':true,'paths':['/x']},{}]}}", "{'allowOut':['b.a.org']}",
	"rules *.a.org 2"},
    {"{'allowOut':['*.a.org'],'rules':{'x.a.org':[{'deny':true}]}}", "{'allowOut':['b.a.org']}",
	"allowOut *.a.org"},
    {"{'allowOut':['a.org:22'],'rules':{'a.org':[{}]}}", "{'allowOut':['a.org']}",
	"allowOut a.org:22"},
    /* what a limit never has */
    {"{'dnsServers':['1.1.1.1']}", "{'allowInternetAccess':true}", "dnsServers"},
    {"{'egressProxy':{'address':'10.0.0.1:1080'}}", "{'allowInternetAccess':true}",
	"leave egressProxy out"},
    {"{'credentials':{'T':{'secret':'s','hosts':['a.org']}}}", "{'allowInternetAccess':true}",
	"credentials T"},
    {"{'rules':{'a.org':[{'transform':{'headers':{'X':'${secrets.s}'}}}]}}",
	"{'allowInternetAccess':true}", "leave s out"},
};

static void
unquote(const char *from, char to[256])
{
	size_t i;

	ck_assert_uint_lt(strlen(from), 256);
	for (i = 0; from[i] != '\0'; i++)
		to[i] = from[i] == '\'' ? '"' : from[i];
	to[i] = '\0';
}

START_TEST(table)
{
	char text[256], limit[256];
	struct hr_err err = {0};
	struct egress_policy *p, *most;
	int r;

	unquote(pairs[_i].p, text);
	unquote(pairs[_i].most, limit);
	p = policy_of(text);
	most = policy_of(limit);
	r = egress_policy_within(p, most, &err);
	ck_assert_msg((r == 0) == (pairs[_i].named == NULL) &&
			  (r == 0 || strstr(err.msg, pairs[_i].named) != NULL),
	    "%s in %s: %s", text, limit, err.msg);
	ck_assert_int_eq(egress_policy_within(p, p, &err) == 0 ||
			     egress_policy_private(p) != NULL || strstr(text, "rules") != NULL,
	    1);
	egress_policy_free(p);
	egress_policy_free(most);
}
END_TEST

/* ---- random ones ---- */

static const char *const entries[] = {"a.org", "*.a.org", "b.a.org", "*.b.a.org", "a.org:22",
    "*.a.org:443", "8.8.8.0/24", "8.8.8.0/25", "8.8.8.128/25", "8.8.8.8", "8.8.8.9:22",
    "8.8.8.8/29", "0.0.0.0/0:22", "8.0.0.0/6", "10.0.0.0/8", "10.0.0.0/9", "10.128.0.0/9",
    "128.0.0.0/1", "2a00::/16", "2a00::/17", "2a00:8000::/17", "2000::/3", "fd00::/8"};
static const char *const ranges[] = {"8.8.8.0/24", "8.8.8.0/25", "8.8.8.8", "8.8.8.8/29",
    "8.0.0.0/6", "10.0.0.0/8", "0.0.0.0/1", "2a00::/16", "2a00:8000::/17", "2002::/15"};
static const char *const names[] = {
    "a.org", "b.a.org", "c.b.a.org", "zz.a.org", "zz.b.a.org", "other.net"};
/* addresses in, at the ends of, and outside all of the ranges above */
static const char *const addresses[] = {"0.0.0.0", "1.2.3.4", "7.255.255.255", "8.0.0.0",
    "8.8.7.255", "8.8.8.0", "8.8.8.7", "8.8.8.8", "8.8.8.9", "8.8.8.15", "8.8.8.16", "8.8.8.127",
    "8.8.8.128", "8.8.8.255", "8.8.9.0", "9.255.255.255", "10.0.0.0", "10.127.255.255",
    "10.128.0.0", "10.255.255.255", "11.0.0.0", "11.255.255.255", "12.0.0.0", "127.0.0.1",
    "127.255.255.255", "128.0.0.0", "169.254.169.254", "200.1.1.1", "255.255.255.255",
    "2000::", "2001:db8::1", "2003::", "2003:ffff::", "2004::", "29ff::", "2a00::", "2a00:7fff::",
    "2a00:8000::", "2a00:ffff::", "2a01::", "3000::1", "fd00::1", "fe80::1"};
#define COUNT(list) (sizeof(list) / sizeof(*(list)))

static void
add_some(struct hr_buf *b, const char *name, const char *const *list, size_t n, unsigned one_of)
{
	const char *comma = "";
	size_t i;

	hr_buf_addf(b, ",\"%s\":[", name);
	for (i = 0; i < n; i++)
		if (random() % one_of == 0) {
			hr_buf_addf(b, "%s\"%s\"", comma, list[i]);
			comma = ",";
		}
	hr_buf_addc(b, ']');
}

static void
make(struct hr_buf *b)
{
	static const char *const ports[] = {"[80,443]", "[443]", "[22]", "[22,443]"};

	hr_buf_addf(b, "{\"allowInternetAccess\":%s,\"ports\":%s",
	    random() % 4 == 0 ? "true" : "false", ports[random() % 4]);
	add_some(b, "allowOut", entries, COUNT(entries), 2 + (unsigned)(random() % 10));
	add_some(b, "denyOut", ranges, COUNT(ranges), 2 + (unsigned)(random() % 10));
	hr_buf_addc(b, '}');
}

static bool
reaches(const struct egress_policy *p, const char *address, int port, bool named)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = in.sin_port};
	struct egress_decision d;

	if (inet_pton(AF_INET6, address, &in6.sin6_addr) == 1)
		return named && egress_policy_result(p, (struct sockaddr *)(void *)&in6);
	ck_assert_int_eq(inet_pton(AF_INET, address, &in.sin_addr), 1);
	if (named)
		return egress_policy_result(p, (struct sockaddr *)(void *)&in);
	egress_policy_address(p, in.sin_addr, port, &d);
	return d.verdict != EGRESS_DENY;
}

/* Returns true if p allows nothing at the port that `most` does not allow, as far as the lists go.
 */
static bool
is_within(const struct egress_policy *p, const struct egress_policy *most, int port)
{
	struct egress_decision mine, theirs;
	bool named = false;
	size_t i;

	for (i = 0; i < COUNT(names); i++) {
		egress_policy_name(p, names[i], port, &mine);
		egress_policy_name(most, names[i], port, &theirs);
		if (mine.verdict != EGRESS_DENY && theirs.verdict == EGRESS_DENY)
			return false;
		named = named || mine.verdict != EGRESS_DENY;
	}
	for (i = 0; i < COUNT(addresses); i++)
		if ((reaches(p, addresses[i], port, false) &&
			!reaches(most, addresses[i], port, false)) ||
		    (named && reaches(p, addresses[i], port, true) &&
			!reaches(most, addresses[i], port, true)))
			return false;
	return true;
}

START_TEST(random_ones)
{
	unsigned i, within = 0;

	srandom(1);
	for (i = 0; i < 20000; i++) {
		HR_BUF(a, 4096);
		HR_BUF(b, 4096);
		struct egress_policy *p, *most;
		struct hr_err err = {0};
		bool want, got;

		make(&a);
		make(&b);
		p = policy_of(hr_buf_str(&a));
		most = policy_of(hr_buf_str(&b));
		want = is_within(p, most, 22) && is_within(p, most, 80) && is_within(p, most, 443);
		got = egress_policy_within(p, most, &err) == 0;
		ck_assert_msg(want == got, "%s in %s: %s", hr_buf_str(&a), hr_buf_str(&b), err.msg);
		within += got;
		egress_policy_free(p);
		egress_policy_free(most);
	}
	ck_assert_uint_ge(within, 200);
	ck_assert_uint_le(within, 19800);
}
END_TEST

/* ---- as a member of a policy ---- */

static const struct {
	const char *text, *named;
	enum hr_errc code;
} limited[] = {
    {"{'allowOut':['b.a.org'],'limit':{'allowOut':['*.a.org']}}", NULL, HR_OK},
    {"{'limit':{'allowOut':['*.a.org']},'allowOut':['b.org']}", "network: allowOut b.org asks",
	HR_E_PERMISSION},
    {"{'allowOut':['b.org'],'limit':null}", NULL, HR_OK},
    {"{'limit':[]}", "limit: network: must be an object", HR_E_INVAL},
    {"{'limit':{'allowed':[]}}", "allowed", HR_E_INVAL},
    {"{'limit':{'limit':{}}}", "limit: \"limit\" cannot be in a limit", HR_E_INVAL},
    {"{'limit':{'rules':{'a.org':[{}]}}}", "\"rules\" cannot", HR_E_INVAL},
    {"{'limit':{'dnsServers':['1.1.1.1']}}", "\"dnsServers\" cannot", HR_E_INVAL},
    {"{'limit':{'credentials':{'T':{'secret':'s','hosts':['a.org']}}}}", "\"credentials\" cannot",
	HR_E_INVAL},
};

START_TEST(members)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_err err = {0};
	struct egress_policy *p;
	char text[256];

	unquote(limited[_i].text, text);
	ck_assert_int_eq(hr_json_decode(text, strlen(text), &o, NULL), 0);
	p = egress_policy_read(o, NULL, &err);
	ck_assert_msg((p != NULL) == (limited[_i].named == NULL) && err.code == limited[_i].code &&
			  (p != NULL || strstr(err.msg, limited[_i].named) != NULL),
	    "%s: %d: %s", text, err.code, err.msg);
	egress_policy_free(p);
}
END_TEST

START_TEST(bounded)
{
	HR_BUF(b, 8u << 20);
	struct egress_policy *p;
	struct hr_err err = {0};
	int i;

	hr_buf_adds(&b, "{\"ports\":[1,2,3,4,5,6,7,8,9],\"allowOut\":[\"a.org\"");
	for (i = 0; i < 30000; i++)
		hr_buf_addf(&b, ",\"8.%d.%d.0/24\"", i >> 8, i & 255);
	hr_buf_adds(&b, "]}");
	p = policy_of(hr_buf_str(&b));
	ck_assert_int_eq(egress_policy_within(p, p, &err), -1);
	ck_assert_int_eq(err.code, HR_E_TOOLARGE);
	egress_policy_free(p);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("egress_within");
	TCase *c = tcase_create("within");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_add_loop_test(c, table, 0, (int)COUNT(pairs));
	tcase_add_test(c, random_ones);
	tcase_add_loop_test(c, members, 0, (int)COUNT(limited));
	tcase_add_test(c, bounded);
	suite_add_tcase(s, c);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
