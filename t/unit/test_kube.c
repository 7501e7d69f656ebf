/* Lists and watches of an API server that gives the answers of a list. */
#include "config.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/err.h"
#include "host/client/rest.h"
#include "host/config/settings.h"
#include "host/kubernetes/kube.h"
#include "lines.h"
#include "proto/json.h"
#include "scratch.h"

#define PAGES 4000

static const char kubeconfig[] =
    "{\"current-context\":\"x\",\"contexts\":[{\"name\":\"x\",\"context\":{\"cluster\":\"c\","
    "\"user\":\"u\"}}],\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":"
    "\"http://127.0.0.1:1\"}}],\"users\":[{\"name\":\"u\",\"user\":{\"token\":\"t\"}}]}";

static struct hr_config *config;
static struct hr_kube kube;

/* ---- the API server ---- */

struct answer {
	int status;
	const char *json;
	unsigned times; /* how often the answer is given */
};

static const struct answer *answers;
static unsigned given; /* how often the present answer was given */

static void
answer_with(const struct answer *list)
{
	answers = list;
	given = 0;
}

int __wrap_hr_rest_call(struct hr_rest *r, const struct hr_rest_call *c, struct hr_rest_answer *ret,
    struct hr_err *err);

int
__wrap_hr_rest_call(
    struct hr_rest *r, const struct hr_rest_call *c, struct hr_rest_answer *ret, struct hr_err *err)
{
	const struct answer *a = answers;

	(void)r;
	ck_assert_ptr_null(c->line);
	ck_assert_uint_ne(a->times, 0);
	if (++given == a->times) {
		answers++;
		given = 0;
	}
	if (a->status == 200) {
		ck_assert_int_eq(hr_json_decode(a->json, strlen(a->json), &ret->json, NULL), 0);
		return 0;
	}
	hr_buf_init(&ret->body, 1000);
	hr_buf_adds(&ret->body, a->json);
	(void)hr_err_set(err, HR_E_HTTP_STATUS, "refused");
	err->status = a->status;
	return -1;
}

static void
set_up(void)
{
	static char variable[320];
	static const char *const env[] = {variable, NULL};
	char path[300];
	struct hr_err err = {0};
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/kubeconfig", scratch);
	f = fopen(path, "w");
	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(fputs(kubeconfig, f), 0);
	ck_assert_int_eq(fclose(f), 0);
	(void)snprintf(variable, sizeof(variable), "KUBECONFIG=%s", path);
	config = hr_config_new(NULL);
	ck_assert_ptr_nonnull(config);
	ck_assert_msg(hr_kube_init(&kube, config, env, 0, &err) == 0, "%s", err.msg);
}

static void
tear_down(void)
{
	hr_kube_done(&kube);
	hr_config_free(config);
}

static int
on_item(void *arg, struct json_object *item)
{
	unsigned *n = arg;

	ck_assert_ptr_nonnull(item);
	(*n)++;
	return 0;
}

#define PAGE "{\"metadata\":{\"continue\":\"x\"},\"items\":[{}]}"
#define LAST "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{},{}]}"

START_TEST(pages)
{
	static const struct answer ends[] = {{200, PAGE, PAGES - 1}, {200, LAST, 1}, {0}};
	static const struct answer goes_on[] = {{200, PAGE, PAGES}, {0}};
	struct hr_err err = {0};
	unsigned n = 0;

	answer_with(ends);
	ck_assert_msg(
	    hr_kube_list(&kube, "/x", "", on_item, &n, NULL, 0, &err) == 0, "%s", err.msg);
	ck_assert_uint_eq(n, PAGES + 1);
	n = 0;
	answer_with(goes_on);
	ck_assert_int_eq(hr_kube_list(&kube, "/x", "", on_item, &n, NULL, 0, &err), -1);
	ck_assert_str_eq(
	    err.msg, "the API server http://127.0.0.1:1 sends a list of more than 4000 pages");
	ck_assert_uint_eq(n, PAGES);
}
END_TEST

/* An answer that is no list must not pass for an empty one. */
START_TEST(no_list)
{
	static const char *const wrong[] = {"{}", "[]", "null",
	    "{\"kind\":\"Status\",\"code\":200}", "{\"items\":{}}", "{\"items\":\"x\"}"};
	static const struct answer empty[] = {
	    {200, "{\"items\":null}", 1}, {200, "{\"items\":[]}", 1}, {0}};
	struct hr_err err = {0};
	unsigned n = 0;
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		const struct answer one[] = {{200, wrong[i], 1}, {0}};

		answer_with(one);
		ck_assert_int_eq(hr_kube_list(&kube, "/x", "", on_item, &n, NULL, 0, &err), -1);
		ck_assert_str_eq(err.msg, "the API server http://127.0.0.1:1 sent no list for /x");
	}
	answer_with(empty);
	for (i = 0; i < 2; i++)
		ck_assert_msg(
		    hr_kube_list(&kube, "/x", "", on_item, &n, NULL, 0, &err) == 0, "%s", err.msg);
	ck_assert_uint_eq(n, 0);
}
END_TEST

static int
full(void *arg, struct json_object *item)
{
	(void)arg;
	(void)item;
	return -1;
}

/* A list that its reader cannot hold must not pass for a whole one. */
START_TEST(no_memory)
{
	static const struct answer list[] = {{200, LAST, 1}, {0}};
	struct hr_err err = {0};

	answer_with(list);
	ck_assert_int_eq(hr_kube_list(&kube, "/x", "", full, NULL, NULL, 0, &err), -1);
	ck_assert_int_eq(err.code, HR_E_NOMEM);
}
END_TEST

struct told {
	char events[16];
	size_t n;
};

static int
on_event(void *arg, enum hr_kube_event event, struct json_object *o)
{
	static const char names[] = {[HR_KUBE_LIST] = 'L',
	    [HR_KUBE_LISTED] = '.',
	    [HR_KUBE_THERE] = 'T',
	    [HR_KUBE_DELETED] = 'D'};
	struct told *t = arg;

	(void)o;
	ck_assert_uint_lt(t->n, sizeof(t->events) - 1);
	t->events[t->n++] = names[event];
	return event == HR_KUBE_LISTED;
}

/* The version of a list is dropped before its second page is read. */
START_TEST(list_that_expires)
{
	static const struct answer expires[] = {{200, PAGE, 1},
	    {410, "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\",\"message\":\"old\"}",
		1},
	    {200, LAST, 1}, {0}};
	struct told told = {.n = 0};
	struct hr_err err = {0};

	answer_with(expires);
	ck_assert_msg(hr_kube_watch(&kube, "/x", "", on_event, &told, &err) == 1, "%s", err.msg);
	ck_assert_str_eq(told.events, "LTLTT.");
}
END_TEST

int
main(void)
{
	Suite *s = suite_create("kube");
	TCase *t = tcase_create("kube");

	tcase_add_unchecked_fixture(t, scratch_make, scratch_remove);
	tcase_add_checked_fixture(t, set_up, tear_down);
	tcase_add_test(t, pages);
	tcase_add_test(t, no_list);
	tcase_add_test(t, no_memory);
	tcase_add_test(t, list_that_expires);
	suite_add_tcase(s, t);
	return lines_run(s);
}
