/* The rules of a box's network with each of their allocations failing in turn: reading says so and
 * (under a sanitizer or valgrind) loses nothing, and a decision never allows more. */
#include "config.h"

#include <json-c/json.h>

#include "egress/policy.h"
#include "fuse.h"
#include "lines.h"
#include "proto/json.h"

static const char network[] =
    "{\"presets\":[\"pypi\"],\"ports\":[80,443,5000],\"dnsServers\":[\"1.1.1.1\"],"
    "\"allowOut\":[\"github.com\",\"*.e.com:22\",\"10.0.0.0/8\"],\"denyOut\":[\"10.1.0.0/16\"],"
    "\"rules\":{\"a.org\":[{\"deny\":true,\"paths\":[\"/x\"]},{\"methods\":[\"GET\"],\"paths\":"
    "[\"/*\"],\"transform\":{\"headers\":{\"X\":\"${secrets.a}\"}}}]},"
    "\"credentials\":{\"T\":{\"secret\":\"b\",\"hosts\":[\"a.org\",\"b.org\"]}}}";

static struct egress_policy *
read_with(long n, struct json_object *o, struct hr_err *err)
{
	const char *dir = getenv("srcdir");
	struct egress_policy *p;
	char presets[512];

	(void)snprintf(presets, sizeof(presets), "%s/conf/network", dir != NULL ? dir : ".");
	*err = (struct hr_err){0};
	fuse = n;
	p = egress_policy_read(o, presets, err);
	return p;
}

START_TEST(reading)
{
	HR_PUT struct json_object *o = json_tokener_parse(network);
	struct egress_policy *p = NULL;
	struct hr_err err;
	long n;

	for (n = 0; p == NULL; n++) {
		p = read_with(n, o, &err);
		ck_assert_msg((p == NULL) == (fuse < 0), "allocation %ld was ignored", n);
		fuse = -1;
		ck_assert_msg(p != NULL || err.code == HR_E_NOMEM, "%ld: %s", n, err.msg);
	}
	ck_assert_int_ge(n, 40);
	egress_policy_free(p);
}
END_TEST

START_TEST(requests)
{
	HR_PUT struct json_object *o = json_tokener_parse(network);
	struct egress_decision d;
	struct hr_err err;
	struct egress_policy *p = read_with(-1, o, &err);
	long n;

	ck_assert_ptr_nonnull(p);
	egress_policy_request(p, "a.org", 443, "GET", "/y", &d);
	ck_assert_int_eq(d.verdict, EGRESS_ALLOW);
	for (n = 0; n < 3; n++) {
		fuse = n;
		egress_policy_request(p, "a.org", 443, "GET", "/%78", &d);
		ck_assert_int_eq(d.verdict, EGRESS_DENY);
	}
	fuse = 0;
	egress_policy_request(p, "a.org", 443, "GET", "/y", &d);
	ck_assert_str_eq(d.rule, "ambiguous path");
	fuse = 1;
	egress_policy_request(p, "a.org", 443, "GET", "/y", &d);
	ck_assert_str_eq(d.rule, "rules a.org 1");
	fuse = -1;
	egress_policy_free(p);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("egress_nomem");
	TCase *t = tcase_create("nomem");

	tcase_add_test(t, reading);
	tcase_add_test(t, requests);
	suite_add_tcase(s, t);
	return lines_run(s);
}
