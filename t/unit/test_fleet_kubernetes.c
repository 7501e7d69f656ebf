/* Rows and keys as objects of an API server, and what a process remembers of them. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "fleet/kubernetes/cache.h"
#include "proto/json.h"

#define ID "00112233445566778899aabbccddeeff"

static struct json_object *
read_json(const char *text)
{
	struct json_object *o = NULL;
	struct hr_json_error why;

	ck_assert_int_eq(hr_json_decode(text, strlen(text), &o, &why), 0);
	return o;
}

/* As the server has it: data in base64 of what `printf | base64` says. */
static struct json_object *
object(const char *kind, const char *version, const char *base64)
{
	char text[2048];

	(void)snprintf(text, sizeof(text),
	    "{\"metadata\":{\"resourceVersion\":\"%s\",\"labels\":{\"handrail/fleet\":\"%s\"},"
	    "\"annotations\":{\"handrail/fleet-owner\":\"me\"}},\"data\":{\"data\":\"%s\"}}",
	    version, kind, base64);
	return read_json(text);
}

/* {"id":ID,"state":1,"request":"{}","session":"s"} and the same with "state":3 */
#define RUNNING                                                                                    \
	"eyJpZCI6IjAwMTEyMjMzNDQ1NTY2Nzc4ODk5YWFiYmNjZGRlZWZmIiwic3RhdGUiOjEsInJlcXVlc3Qi"         \
	"OiJ7fSIsInNlc3Npb24iOiJzIn0="
#define PAUSED                                                                                     \
	"eyJpZCI6IjAwMTEyMjMzNDQ1NTY2Nzc4ODk5YWFiYmNjZGRlZWZmIiwic3RhdGUiOjMsInJlcXVlc3Qi"         \
	"OiJ7fSIsInNlc3Npb24iOiJzIn0="

START_TEST(there_and_back)
{
	struct hr_fleet_row r = {.id = ID,
				.key = 5,
				.session = "a \"b\"",
				.state = HR_FLEET_PAUSED,
				.reason = "why\n",
				.shape = "abc",
				.factor = 2,
				.at = "10.1.2.3:8080",
				.server_key = "k1",
				.session_key = "k2",
				.vscode_port = 1,
				.app_ports = {2, 3},
				.created = 1234567890123,
				.active = 4,
				.resumed = 5},
			    back;
	unsigned char sum[HR_FLEET_KEY_SUM], sum_back[HR_FLEET_KEY_SUM];
	struct hr_fleet_key k = {.id = 7,
				.name = "n",
				.scopes = 3,
				.limits = {1, 2},
				.expires = 9,
				.revoked = true},
			    key_back;
	struct json_object *o;
	HR_BUF(b, 1 << 16);

	r.request = strdup("{\"image\":\"i\"}");
	hr_object_row_data(&b, &r);
	o = read_json(hr_buf_str(&b));
	ck_assert_int_eq(hr_object_read_row(o, &back), 1);
	ck_assert_str_eq(back.id, r.id);
	ck_assert_str_eq(back.session, r.session);
	ck_assert_str_eq(back.reason, r.reason);
	ck_assert_str_eq(back.request, r.request);
	ck_assert_str_eq(back.at, r.at);
	ck_assert_str_eq(back.server_key, r.server_key);
	ck_assert_str_eq(back.session_key, r.session_key);
	ck_assert_int_eq(back.state, r.state);
	ck_assert_int_eq(back.created, r.created);
	ck_assert_int_eq(back.app_ports[1], 3);
	json_object_put(o);
	hr_fleet_row_done(&r);
	hr_fleet_row_done(&back);
	hr_buf_reset(&b);
	hr_fleet_key_sum("text", sum);
	hr_object_key_data(&b, &k, sum);
	o = read_json(hr_buf_str(&b));
	ck_assert_int_eq(hr_object_read_key(o, &key_back, sum_back), 1);
	ck_assert_mem_eq(sum, sum_back, sizeof(sum));
	ck_assert_int_eq(key_back.limits.factors, 2);
	ck_assert(key_back.revoked);
	json_object_put(o);
}
END_TEST

static const char *const damaged[] = {"null", "[]", "{}", "{\"id\":\"" ID "\",\"state\":1}",
    "{\"id\":\"short\",\"state\":1,\"request\":\"\"}",
    "{\"id\":\"" ID "\",\"state\":99,\"request\":\"\"}",
    "{\"id\":\"" ID "\",\"state\":-1,\"request\":\"\"}", "{\"id\":1,\"state\":1,\"request\":\"\"}",
    "{\"sum\":\"zz\",\"id\":1}", "{\"sum\":7,\"id\":1}", "{\"sum\":\"" ID ID "\",\"id\":0}",
    "{\"sum\":\"" ID ID "\"}"};

START_TEST(nothing_of_ours)
{
	HR_PUT struct json_object *o = read_json(damaged[_i]);
	HR_PUT struct json_object *whole = object("row", "1", "!!!");
	unsigned char sum[HR_FLEET_KEY_SUM];
	struct hr_fleet_row r;
	struct hr_fleet_key k;

	ck_assert_int_eq(hr_object_read_row(o, &r), 0);
	ck_assert_int_eq(hr_object_read_key(o, &k, sum), 0);
	ck_assert_ptr_null(hr_object_data(whole));
}
END_TEST

/* A state after the last one is that of a later program. */
START_TEST(states_of_rows)
{
	HR_BUF(b, 1000);
	struct hr_fleet_row r;
	int i;

	for (i = -1; i <= HR_FLEET_STATES; i++) {
		struct json_object *o;

		hr_buf_reset(&b);
		hr_buf_addf(&b, "{\"id\":\"" ID "\",\"state\":%d,\"request\":\"\"}", i);
		o = read_json(b.p);
		ck_assert_int_eq(hr_object_read_row(o, &r), i >= 0 && i < HR_FLEET_STATES);
		if (i >= 0 && i < HR_FLEET_STATES) {
			ck_assert_int_eq(r.state, i);
			hr_fleet_row_done(&r);
		}
		json_object_put(o);
	}
}
END_TEST

/* Of one session and key one name, and of another one another. */
START_TEST(names)
{
	char a[HR_OBJECT_NAME], b[HR_OBJECT_NAME];

	hr_object_session_name(1, "../x y", a);
	hr_object_session_name(1, "../x y", b);
	ck_assert_str_eq(a, b);
	ck_assert_uint_eq(strspn(a, "abcdefghijklmnopqrstuvwxyz0123456789-"), strlen(a));
	hr_object_session_name(2, "../x y", b);
	ck_assert_str_ne(a, b);
	hr_object_session_name(12, "3", a);
	hr_object_session_name(1, "23", b);
	ck_assert_str_ne(a, b);
}
END_TEST

static void
count(void *arg, const char *id)
{
	ck_assert_str_eq(id, ID);
	++*(int *)arg;
}

/* What is older than what is known changes nothing; what a list lacks is gone. */
START_TEST(cache)
{
	struct json_object *first = object("row", "10", RUNNING),
			   *second = object("row", "11", PAUSED);
	struct hr_cached known;
	struct hr_fleet_row r;
	struct hr_err err;
	char id[HR_FLEET_ID];
	int gone = 0;
	struct hr_cache *c = hr_cache_new(&err);

	ck_assert_ptr_nonnull(c);
	ck_assert_int_eq(hr_cache_find(c, ID, &r, NULL, &err), 0);
	ck_assert_int_eq(hr_cache_put(c, second, id, &err), 1);
	ck_assert_str_eq(id, ID);
	ck_assert_int_eq(hr_cache_put(c, first, id, &err), 0);
	ck_assert_int_eq(hr_cache_find(c, ID, &r, &known, &err), 1);
	ck_assert_int_eq(r.state, HR_FLEET_PAUSED);
	ck_assert_str_eq(known.version, "11");
	ck_assert_str_eq(known.owner, "me");
	ck_assert(!known.held);
	hr_fleet_row_done(&r);
	hr_cache_hold(c, ID, true);
	hr_cache_use(c, ID, 50);
	ck_assert_int_eq(hr_cache_find(c, ID, &r, &known, &err), 1);
	ck_assert(known.held);
	ck_assert_int_eq(known.used, 50);
	hr_fleet_row_done(&r);
	hr_cache_hold(c, ID, false);
	hr_cache_list(c);
	ck_assert_int_eq(hr_cache_put(c, second, id, &err), 0);
	hr_cache_listed(c, count, &gone);
	ck_assert_int_eq(gone, 0);
	hr_cache_list(c);
	hr_cache_listed(c, count, &gone);
	ck_assert_int_eq(gone, 1);
	ck_assert_int_eq(hr_cache_find(c, ID, &r, NULL, &err), 0);
	hr_cache_free(c);
	json_object_put(first);
	json_object_put(second);
}
END_TEST

/* {"id":7,"sum":SUM} and the same with id 8; SUM is 64 digits 0 */
#define KEY_7                                                                                      \
	"eyJpZCI6Nywic3VtIjoiMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw"     \
	"MDAwMDAwMDAwMDAwMDAwMCJ9"
#define KEY_8                                                                                      \
	"eyJpZCI6OCwic3VtIjoiMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw"     \
	"MDAwMDAwMDAwMDAwMDAwMCJ9"

/* A key whose object is gone is not valid any more. */
START_TEST(keys_that_are_gone)
{
	HR_PUT struct json_object *seven = object("key", "10", KEY_7);
	HR_PUT struct json_object *eight = object("key", "11", KEY_8);
	unsigned char sum[HR_FLEET_KEY_SUM];
	struct hr_fleet_key k;
	struct hr_err err;
	struct hr_cache *c = hr_cache_new(&err);

	ck_assert_ptr_nonnull(c);
	ck_assert_int_eq(hr_cache_put(c, seven, NULL, &err), 0);
	ck_assert_int_eq(hr_cache_put(c, eight, NULL, &err), 0);
	ck_assert_int_eq(hr_cache_key_of(c, 7, &k, sum), 1);
	hr_cache_drop_key(c, 7);
	ck_assert_int_eq(hr_cache_key_of(c, 7, &k, sum), 0);
	ck_assert_int_eq(hr_cache_key_of(c, 8, &k, sum), 1);
	ck_assert_int_eq(hr_cache_put(c, seven, NULL, &err), 0);
	hr_cache_list(c);
	ck_assert_int_eq(hr_cache_put(c, eight, NULL, &err), 0);
	hr_cache_listed(c, NULL, NULL);
	ck_assert_int_eq(hr_cache_key_of(c, 7, &k, sum), 0);
	ck_assert_int_eq(hr_cache_key_of(c, 8, &k, sum), 1);
	hr_cache_free(c);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("fleet_kubernetes");
	TCase *t = tcase_create("objects");
	SRunner *runner;
	int failed;

	tcase_add_test(t, there_and_back);
	tcase_add_loop_test(t, nothing_of_ours, 0, sizeof(damaged) / sizeof(*damaged));
	tcase_add_test(t, states_of_rows);
	tcase_add_test(t, names);
	tcase_add_test(t, cache);
	tcase_add_test(t, keys_that_are_gone);
	suite_add_tcase(s, t);
	runner = srunner_create(s);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
