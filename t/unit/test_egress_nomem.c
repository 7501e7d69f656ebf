/* The rules of a box's network with each of their allocations failing in turn: reading says so and
 * (under a sanitizer or valgrind) loses nothing, and a decision never allows more. Linked with
 * --wrap. */
#include "config.h"

#include <json-c/json.h>
#include <stdarg.h>

#include "egress/policy.h"
#include "lines.h"
#include "proto/json.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void *__real_reallocarray(void *p, size_t n, size_t size);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
int __real_vasprintf(char **ret, const char *fmt, va_list ap);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
int __wrap_vasprintf(char **ret, const char *fmt, va_list ap);

static long fuse = -1; /* allocations until one fails; below 0: none does */

static bool
burnt(void)
{
	return fuse >= 0 && fuse-- == 0;
}

void *
__wrap_malloc(size_t size)
{
	return burnt() ? NULL : __real_malloc(size);
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return burnt() ? NULL : __real_calloc(n, size);
}

void *
__wrap_realloc(void *p, size_t size)
{
	return burnt() ? NULL : __real_realloc(p, size);
}

void *
__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return burnt() ? NULL : __real_reallocarray(p, n, size);
}

char *
__wrap_strdup(const char *s)
{
	return burnt() ? NULL : __real_strdup(s);
}

char *
__wrap_strndup(const char *s, size_t n)
{
	return burnt() ? NULL : __real_strndup(s, n);
}

int
__wrap_vasprintf(char **ret, const char *fmt, va_list ap)
{
	return burnt() ? -1 : __real_vasprintf(ret, fmt, ap);
}

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
