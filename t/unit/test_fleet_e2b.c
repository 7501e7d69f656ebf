/* fleet/e2b/text: queries, times, signatures, keys and paths of the E2B API. */
#include "config.h"

#include <check.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lines.h"

#include "base/strv.h"
#include "fleet/copies.h"
#include "fleet/e2b/e2b.h"
#include "fleet/fleet.h"
#include "proto/json.h"

#define TOKEN "ea_0123456789abcdef0123456789abcdef01234567"

static bool
add_pair(void *arg, const char *key, const char *value)
{
	hr_buf_addf(arg, "[%s|%s]", key, value);
	return strcmp(key, "stop") != 0;
}

static const struct {
	const char *query, *pairs;
	bool good;
} filters[] = {
    {"", "", true},
    {"sid%3Dx%252520y", "[sid|x y]", true},
    {"a%3D1%26b%3D2", "[a|1][b|2]", true},
    {"a%3D1%26%26", "[a|1]", true},
    {"a", "[a|]", true},
    {"a%3D", "[a|]", true},
    {"a%3Db%3Dc", "[a|b=c]", true},
    {"%2525C5%2525BE%252526%3D%25253D", "[\xc5\xbe&|=]", true},
    {"a%3D%25252B", "[a|+]", true},
    {"a%3D%252B", "[a| ]", true}, /* encoded once too few, it is a blank */
    {"stop%3D1%26a%3D1", "[stop|1]", false},
    {"a%3D%252500", "", false},
    {"%00", "", false},
};

START_TEST(metadata_is_decoded_three_times)
{
	const char *q = filters[_i].query;
	HR_BUF(b, 4096);
	bool good = hr_e2b_metadata(q, strlen(q), add_pair, &b);

	ck_assert_int_eq(good, filters[_i].good);
	ck_assert_str_eq(hr_buf_str(&b), filters[_i].pairs);
}
END_TEST

static const struct {
	const char *text;
	int64_t at;
} times[] = {
    {"1970-01-01T00:00:00Z", 0},
    {"2026-11-28T21:14:19.123456+00:00", 1795900459},
    {"2026-11-28T21:14:19 00:00", 1795900459},
    {"2026-11-28T22:14:19+01:00", 1795900459},
    {"2026-11-28T20:14:19-0100", 1795900459},
    {"2026-11-28T21:14:19z", 1795900459},
    {"2026-11-28T21:14:19", -1},
    {"2026-11-28T21:14:19+25:00", -1},
    {"2026-11-28T21:14:19+00:00x", -1},
    {"2026-11-28", -1},
    {"1970-01-01T00:00:00+01:00", -1},
    {"now", -1},
    {"", -1},
};

START_TEST(times_have_a_zone)
{
	ck_assert_int_eq(hr_e2b_time(times[_i].text), times[_i].at);
}
END_TEST

static const struct {
	const char *path, *operation, *user, *expiry, *signature;
} signatures[] = {
    {"f.txt", "read", "", "", "v1_YmJYddvFC+SKFqCr7qI/iUEd6w2BT/lRYq78Ey82kTU"},
    {"f.txt", "read", "", "4102444800", "v1_FPro67Oc6Ev/23Yud+b9b5trUQwSL4X/opIqHSRrw4g"},
    {"f.txt", "read", "user", "4102444800", "v1_w2Dxw8bVNHPR8TuD//5utvOS+DjZj+C1QMys1Do1Cjw"},
    {"f.txt", "read", "", "1000000000", "v1_5eD1eBxpxwcmQmBLuUYKdpcjPNIHtWC02XpGW2E0zCw"},
    {"/home/user/f.txt", "read", "user", "", "v1_hePvpiGciNTx5fU4bNjLR/8ic9TgG6wSjn1ct1qUqlE"},
    {"\xc5\xbelu\xc5\xa5.txt", "read", "", "", "v1_nEQGutMW0CFvMiVjlPoiEkWlgqh4UJaIpQ06tEWgJ2M"},
    {"w.txt", "write", "", "", "v1_Da1FpnyOyML1KMKs5Y212YybxW98Bz4jLzaMaddCwHw"},
};

START_TEST(signatures_are_those_of_the_original)
{
	char ret[HR_E2B_SIGNATURE];

	hr_e2b_sign(signatures[_i].path, signatures[_i].operation, signatures[_i].user, TOKEN,
	    signatures[_i].expiry, ret);
	ck_assert_str_eq(ret, signatures[_i].signature);
}
END_TEST

START_TEST(keys_have_two_texts)
{
	char key[64], traffic[2][HR_E2B_TRAFFIC_TOKEN];

	ck_assert_str_eq(hr_e2b_key("e2b_0123", key), "hrk_0123");
	ck_assert_str_eq(hr_e2b_key("hrk_0123", key), "hrk_0123");
	ck_assert_str_eq(hr_e2b_key("", key), "");
	ck_assert(hr_fleet_same("a", "a"));
	ck_assert(!hr_fleet_same("a", "b"));
	ck_assert(!hr_fleet_same("a", "ab"));
	ck_assert(!hr_fleet_same("", ""));
	hr_e2b_traffic_token("a", traffic[0]);
	hr_e2b_traffic_token("b", traffic[1]);
	ck_assert_uint_eq(strlen(traffic[0]), HR_E2B_TRAFFIC_TOKEN - 1);
	ck_assert_str_ne(traffic[0], traffic[1]);
}
END_TEST

static const struct {
	const char *path;
	bool out, closed;
} paths[] = {
    {"/health", false, false},
    {"/files?path=/../x", false, false},
    {"/a..b/c.", false, false},
    {"/..", true, false},
    {"/a/../b", true, false},
    {"/a/%2e%2E/b", true, false},
    {"/a%2f..", true, false},
    {"/a%00", true, true},
    {"", true, true},
    {"files", true, false},
    {"/init", false, true},
    {"/init?x", false, true},
    {"/init/", false, true},
    {"/init;x", false, true},
    {"//init", false, true},
    {"/./init", false, true},
    {"/.//./INIT", false, true},
    {"/%69nit", false, true},
    {"/initial", false, false},
    {"/fsthaw", false, true},
    {"/upgrade", false, true},
};

START_TEST(paths_stay_below_their_prefix)
{
	ck_assert_int_eq(hr_e2b_leads_out(paths[_i].path), paths[_i].out);
	ck_assert_int_eq(hr_e2b_is_closed(paths[_i].path), paths[_i].closed);
}
END_TEST

START_TEST(templates_are_names_of_images)
{
	HR_CLEAN(hr_strv_done) struct hr_strv options = {0};
	struct hr_fleet_api api = {.kind = "docker", .templates = &options};
	struct hr_e2b_template t;

	ck_assert(hr_e2b_template(&api, "base", &t));
	ck_assert_str_eq(t.image, "");
	ck_assert_str_eq(t.user, "user");
	ck_assert_str_eq(t.workdir, "/home/user");
	ck_assert(hr_e2b_template(&api, "code-interpreter-v1:latest", &t));
	ck_assert(!hr_e2b_template(&api, "base:v2", &t));
	ck_assert(!hr_e2b_template(&api, "basement", &t));
	ck_assert(!hr_e2b_template(&api, "bas", &t));
	hr_strv_add(&options, "mine=image:1;user=me;workdir=/srv");
	ck_assert(hr_e2b_template(&api, "mine:default", &t));
	ck_assert_str_eq(t.image, "image:1");
	ck_assert_str_eq(t.user, "me");
	ck_assert_str_eq(t.workdir, "/srv");
	api.kind = "local"; /* which makes no accounts */
	ck_assert(hr_e2b_template(&api, "mine", &t));
	ck_assert_str_eq(t.user, "");
	ck_assert_ptr_null(hr_e2b_template_wrong("a=b"));
	ck_assert_ptr_null(hr_e2b_template_wrong("a="));
	ck_assert_ptr_nonnull(hr_e2b_template_wrong("a"));
	ck_assert_ptr_nonnull(hr_e2b_template_wrong("=b"));
	ck_assert_ptr_nonnull(hr_e2b_template_wrong("a b=c"));
	ck_assert_ptr_nonnull(hr_e2b_template_wrong("a=b;user=-x"));
	ck_assert_ptr_nonnull(hr_e2b_template_wrong("a=b;workdir=x"));
	ck_assert_ptr_nonnull(hr_e2b_template_wrong("a=b;user=0123456789012345678901234567890123"));
}
END_TEST

static int
list_copies(void *self, const char *what, const char *id, const char *args, char **ret_json,
    struct hr_err *err)
{
	(void)id;
	ck_assert_str_eq(what, HR_COPIES_LIST);
	ck_assert_ptr_nonnull(strstr(args, "\"7.tools\""));
	*ret_json = strdup(self);
	return *ret_json != NULL ? 0 : hr_err_nomem(err);
}

#define SNAPSHOT(tag, created)                                                                     \
	"{\"files\":1,\"bytes\":1,\"still\":true,\"tag\":\"" tag "\",\"created\":" #created "}"

static const struct {
	const char *list, *found, *image;
} same_names[] = {
    {"[]", NULL, NULL},
    {"[" SNAPSHOT("7.tools.base", 5) "," SNAPSHOT("7.tools.mine", 9) "]", "tools.mine", "image:1"},
    {"[" SNAPSHOT("7.tools.mine", 9) "," SNAPSHOT("7.tools.base", 5) "]", "tools.mine", "image:1"},
    {"[" SNAPSHOT("7.tools.mine", 5) "," SNAPSHOT("7.tools.base", 9) "]", "tools.base", ""},
    /* the whole name comes first, however old it is */
    {"[" SNAPSHOT("7.tools.mine", 9) "," SNAPSHOT("7.tools", 1) "," SNAPSHOT("7.tools.base", 9) "]",
	"tools", ""},
    /* other names, templates that do not exist, and other keys */
    {"[" SNAPSHOT("7.tools.base", 1) "," SNAPSHOT("7.tools2.base", 9) "," SNAPSHOT(
	 "7.tools.gone", 9) "," SNAPSHOT("8.tools.mine", 9) "]",
	"tools.base", ""},
};

START_TEST(newest_of_several_snapshots)
{
	HR_CLEAN(hr_strv_done) struct hr_strv options = {0};
	const struct hr_fleet_engine engine = {.copies = list_copies};
	HR_FREE char *list = strdup(same_names[_i].list);
	struct hr_fleet fleet = {.engine = &engine, .engine_self = list};
	const struct hr_fleet_api api = {.kind = "box", .templates = &options, .fleet = &fleet};
	const struct hr_fleet_call call = {.api = &api, .key.id = 7};
	const char *wanted = same_names[_i].found;
	char snapshot[HR_FLEET_SNAPSHOT_NAME];
	struct hr_e2b_template t;
	struct hr_err err = {0};

	hr_strv_add(&options, "mine=image:1");
	ck_assert_int_eq(
	    hr_e2b_snapshot_template(&call, "tools", snapshot, &t, &err), wanted != NULL);
	if (wanted != NULL) {
		ck_assert_str_eq(snapshot, wanted);
		ck_assert_ptr_eq(t.name, snapshot);
		ck_assert_str_eq(t.image, same_names[_i].image);
	}
}
END_TEST

/* A factor multiplies the limits of a sandbox; the machine is the limit above and without them. */
START_TEST(limits_of_sandboxes)
{
	const int64_t cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const int64_t mb = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE) / (1024 * 1024);
	const struct {
		int64_t percent, mb, factor, want_cpus, want_mb;
	} rows[] = {{0, 0, 1, cpus, mb}, {50, 64, 1, 1, 64}, {50, 64, 2, 1, 128},
	    {1 << 20, 1 << 30, 1, cpus, mb}};
	size_t i;

	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		const struct hr_fleet_options o = {
		    .cpu_percent = rows[i].percent, .memory_mb = rows[i].mb};
		const struct hr_fleet_api api = {.options = &o};
		int64_t has_cpus = 0, has_mb = 0;

		hr_e2b_limits(&api, rows[i].factor, &has_cpus, &has_mb);
		ck_assert_int_eq(has_cpus, rows[i].want_cpus);
		ck_assert_int_eq(has_mb, rows[i].want_mb);
	}
}
END_TEST

/* Handlers outlive their requests by months: a refused body must leave nothing in memory. */
START_TEST(a_refused_create_is_freed)
{
	static const char text[] =
	    "{\"templateID\":\"base\",\"timeout\":60,\"network\":{\"denyOut\":[\"0.0.0.0/0\"],"
	    "\"allowOut\":[\"example.com\"],\"maskRequestHost\":\"a b\"}}";
	HR_CLEAN(hr_strv_done) struct hr_strv options = {0};
	const struct hr_fleet_engine engine = {.rules = true};
	struct hr_fleet fleet = {.engine = &engine};
	const struct hr_fleet_api api = {
	    .kind = "box", .templates = &options, .fleet = &fleet, .most_hours = 1};
	const struct hr_fleet_request q = {.idempotency_key = "one"};
	struct hr_fleet_answer a = {.status = 0};
	HR_PUT struct json_object *body = NULL;
	struct hr_fleet_call call = {.api = &api, .q = &q, .a = &a};
	size_t before = 0, i;

	hr_buf_init(&a.body, 4096);
	ck_assert_int_eq(hr_json_decode(text, sizeof(text) - 1, &body, NULL), 0);
	call.body = body;
	for (i = 0; i < 1000; i++) {
		if (i == 100) /* the first ones fill caches */
			before = mallinfo2().uordblks;
		hr_e2b_create_v2(&call);
	}
	ck_assert_uint_le(mallinfo2().uordblks, before + 65536);
	ck_assert_int_eq(a.status, 400);
	ck_assert_ptr_nonnull(strstr(hr_buf_str(&a.body), "maskRequestHost"));
	hr_buf_done(&a.body);
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("fleet_e2b");
	TCase *tc = tcase_create("fleet_e2b");

	suite_add_tcase(s, tc);
#define EACH(test, of) tcase_add_loop_test(tc, test, 0, (int)(sizeof(of) / sizeof(*(of))))
	EACH(metadata_is_decoded_three_times, filters);
	EACH(times_have_a_zone, times);
	EACH(signatures_are_those_of_the_original, signatures);
	tcase_add_test(tc, keys_have_two_texts);
	EACH(paths_stay_below_their_prefix, paths);
	tcase_add_test(tc, templates_are_names_of_images);
	EACH(newest_of_several_snapshots, same_names);
	tcase_add_test(tc, limits_of_sandboxes);
	tcase_add_test(tc, a_refused_create_is_freed);
	return lines_run(s);
}
