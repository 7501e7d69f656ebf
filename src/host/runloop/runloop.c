/* Implements the back-end "runloop": devboxes of Runloop (doc/clouds.md, "Runloop"). Each changing
 * request has its own key, so a repeated request counts once. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/runloop/runloop.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/path.h"
#include "proto/json.h"

#define WAIT_S 300
#define POLL_S 25 /* seconds per long poll */

#define RULE(more)                                                                                 \
	{                                                                                          \
		.again = {{.failures = HR_REST_UNSENT | HR_REST_LOST | HR_REST_LIMITED |           \
				       HR_REST_FAILED | HR_REST_ODD | (more),                      \
		    .always = HR_REST_UNDONE,                                                      \
		    .attempts = 6,                                                                 \
		    .first_ms = 1000,                                                              \
		    .most_ms = 60000,                                                              \
		    .jitter_percent = 25,                                                          \
		    .after_max_s = 60}},                                                           \
		.should = "x-should-retry", .key = "x-request-id: handrail-retry-"                 \
	}

static const struct hr_api_rule rule = RULE(HR_REST_SLOW | HR_REST_CONFLICT), wait_rule = RULE(0);

/* Opens the API. Long polls use the second rule, because their 408 is no failure. */
static int
r_open_api(struct hr_cloud *c, struct hr_err *err)
{
	const char *url = hr_cloud_env(c, "RUNLOOP_BASE_URL", "https://api.runloop.ai");
	HR_FREE char *key = hr_cloud_key(c, "RUNLOOP_API_KEY", err);
	HR_FREE char *value = NULL;

	if (key == NULL || hr_text_setf(&value, err, "Bearer %s", key) != 0 ||
	    hr_api_init(&c->api, HR_RUNLOOP_WHO, &rule, url, err) != 0 ||
	    hr_api_header(&c->api, "Authorization", value, true, err) != 0 ||
	    hr_api_init(&c->plane, HR_RUNLOOP_WHO, &wait_rule, url, err) != 0)
		return -1;
	return hr_api_header(&c->plane, "Authorization", value, true, err);
}

/* ---- requests ---- */

int
hr_runloop_post(struct hr_cloud *c, const char *id, const char *what, struct json_object *body,
    struct json_object **ret, struct hr_err *err)
{
	const struct hr_api_call q = {.method = "POST",
	    .path = HR_RUNLOOP_PATH,
	    .id = id,
	    .rest = what,
	    .body = body,
	    .type = body == NULL ? "application/json" : NULL};
	int r = hr_api_json(&c->api, &q, ret, err);

	json_object_put(body);
	return r;
}

/* ---- life ---- */

static int
r_create(struct hr_cloud *c, bool *unsure, struct hr_err *err)
{
	HR_PUT struct json_object *body =
	    hr_json_object(err, "name", json_object_new_string(c->h->sid), "metadata",
		hr_cloud_labels(c), "blueprint_name", hr_json_maybe(c->image), NULL);
	const struct hr_api_call q = {.method = "POST", .path = "/v1/devboxes", .body = body};
	HR_CLEAN(hr_api_answer_done) struct hr_api_answer a = {0};
	const char *id;
	int r = body != NULL ? 0 : -1;

	*unsure = false;
	if (r == 0) {
		r = hr_api_do(&c->api, &q, &a, err);
		*unsure = r != 0 && a.unsure;
		c->unmade = r != 0 && !a.unsure;
	}
	if (r == 0)
		r = hr_field_text(HR_RUNLOOP_WHO, "the devbox", a.json, "id", &id, err);
	if (r == 0)
		r = hr_text_set(&c->id, id, err);
	return r;
}

int
hr_runloop_poll(struct hr_cloud *c, const char *what, const char *const *words, int watch_fd,
    struct json_object **ret, struct hr_err *err)
{
	struct json_object *body = hr_json_object(err, "statuses", hr_json_list(err, words),
	    "timeout_seconds", json_object_new_int(POLL_S), NULL);
	const struct hr_api_call q = {.method = "POST",
	    .path = HR_RUNLOOP_PATH,
	    .id = c->id,
	    .rest = what,
	    .body = body,
	    .timeout_s = POLL_S + 30,
	    .watch_fd = watch_fd};
	struct hr_err mine = {0};
	int r;

	if (body == NULL)
		return -1;
	r = hr_api_json(&c->plane, &q, ret, &mine);
	json_object_put(body);
	if (r != 0 && mine.status == 408)
		return 0;
	if (r != 0 && err != NULL)
		*err = mine;
	return r == 0 ? 1 : -1;
}

static int
wait_status(struct hr_cloud *c, const char *wanted, struct hr_err *err)
{
	const char *const words[] = {wanted, "failure", "shutdown", NULL};
	int64_t end = hr_now_ms() + WAIT_S * 1000;
	struct hr_cloud_cuts cuts = {.since_ms = hr_now_ms()};
	HR_PUT struct json_object *o = NULL;
	const char *status;
	int r;

	while ((r = hr_runloop_poll(c, "/wait_for_status", words, -1, &o, err)) == 0) {
		if (!hr_cloud_goes_on(&cuts, false, hr_now_ms()))
			return hr_err_set(err, HR_E_PROTO,
			    HR_RUNLOOP_WHO
			    ": the service does not wait for the devbox to be %s: it answers "
			    "at once",
			    wanted);
		if (hr_now_ms() > end)
			return hr_err_set(err, HR_E_RUNTIME_TIMEOUT,
			    HR_RUNLOOP_WHO ": the devbox is not %s after %d seconds", wanted,
			    WAIT_S);
	}
	if (r < 0)
		return -1;
	r = hr_field_text(HR_RUNLOOP_WHO, "the devbox", o, "status", &status, err);
	if (r == 0 && strcmp(status, wanted) != 0)
		r = hr_err_set(err, HR_E_RUNTIME, HR_RUNLOOP_WHO ": the devbox ended in %s: %.300s",
		    status,
		    hr_json_text_or(o, "failure_reason",
			hr_json_text_or(o, "shutdown_reason", "no reason was given")));
	return r;
}

static int
r_wait(struct hr_cloud *c, struct hr_err *err)
{
	return wait_status(c, "running", err);
}

static const char *const words[][2] = {{"suspended", "paused"}, {"suspending", "paused"},
    {"shutdown", "gone"}, {"failure", "exited"}, {NULL, NULL}};
static const struct hr_cloud_shape shape = {
    .id = "id", .labels = "metadata", .state = "status", .otherwise = "unknown", .words = words};

static int
r_look(struct hr_cloud *c, struct hr_err *err)
{
	const struct hr_api_call q = {.method = "GET", .path = HR_RUNLOOP_PATH, .id = c->id};
	HR_PUT struct json_object *o = NULL;
	struct hr_err mine = {0};
	const char *status = "shutdown";
	int r = hr_api_json(&c->api, &q, &o, &mine);

	if (r == 0)
		r = hr_field_text(HR_RUNLOOP_WHO, "the devbox", o, "status", &status, &mine);
	r = hr_api_or_gone(r, &mine, err);
	if (r == 0)
		(void)snprintf(c->state, sizeof(c->state), "%s", hr_cloud_word(&shape, status));
	return r;
}

/* Reads a page of the list. *last is the id after which the next page starts; "" after the last
 * page. */
static int
one_page(struct json_object *page, const char *run, char last[256], hr_cloud_found_fn *fn,
    void *arg, struct hr_err *err)
{
	struct json_object *list;
	bool more;
	int r =
	    hr_field_of(HR_RUNLOOP_WHO, "the list", page, "devboxes", json_type_array, &list, err);

	if (r == 0)
		r = hr_field_flag(HR_RUNLOOP_WHO, "the list", page, "has_more", &more, err);
	if (r == 0)
		r = hr_cloud_entries(HR_RUNLOOP_WHO, &shape, list, run, fn, arg, err);
	*last = '\0';
	if (r == 0 && more && hr_json_count(list) > 0)
		(void)snprintf(last, 256, "%s",
		    hr_json_text_or(hr_json_entry(list, hr_json_count(list) - 1), "id", ""));
	return r;
}

static int
r_list(struct hr_cloud *c, const char *run, hr_cloud_found_fn *fn, void *arg, struct hr_err *err)
{
	char last[256] = "";
	unsigned pages = 0;
	int r;

	do {
		struct hr_api_call q = {.method = "GET", .path = "/v1/devboxes?limit=100"};
		HR_PUT struct json_object *page = NULL;

		if (hr_cloud_page(HR_RUNLOOP_WHO, &pages, err) != 0)
			return -1;
		if (*last != '\0') {
			q.path = "/v1/devboxes?limit=100&starting_after=";
			q.id = last;
		}
		r = hr_api_json(&c->api, &q, &page, err);
		if (r == 0)
			r = one_page(page, run, last, fn, arg, err);
	} while (r == 0 && *last != '\0');
	return r < 0 ? -1 : 0;
}

static int
r_end(struct hr_cloud *c, const char *id, struct hr_err *err)
{
	struct hr_err mine = {0};
	int r = hr_runloop_post(c, id, "/shutdown", NULL, NULL, &mine);

	return hr_api_or_gone(r, &mine, err);
}

static int
r_pause(struct hr_cloud *c, struct hr_err *err)
{
	return hr_runloop_post(c, c->id, "/suspend", NULL, NULL, err) == 0
		   ? wait_status(c, "suspended", err)
		   : -1;
}

static int
r_resume(struct hr_cloud *c, struct hr_err *err)
{
	return hr_runloop_post(c, c->id, "/resume", NULL, NULL, err) == 0 ? r_wait(c, err) : -1;
}

static int
r_keep(struct hr_cloud *c, unsigned seconds, struct hr_err *err)
{
	(void)seconds; /* the API has no duration, only "used now" */
	return hr_runloop_post(c, c->id, "/keep_alive", json_object_new_object(), NULL, err);
}

/* ---- files ---- */

static int
r_get(struct hr_cloud *c, const char *path, struct hr_buf *b, struct hr_err *err)
{
	HR_PUT struct json_object *body = hr_json_texts(err, "path", path, NULL);
	const struct hr_api_call q = {.method = "POST",
	    .path = HR_RUNLOOP_PATH,
	    .id = c->id,
	    .rest = "/download_file",
	    .body = body,
	    .raw = true};
	HR_CLEAN(hr_api_answer_done) struct hr_api_answer a = {0};

	if (body == NULL)
		return -1;
	return hr_api_file(&c->api, &q, path, b, &a, err);
}

int
hr_runloop_put(struct hr_cloud *c, const char *path, const char *p, size_t len, struct hr_err *err)
{
	const struct hr_api_part parts[] = {{.name = "path", .p = path, .len = strlen(path)},
	    {.name = "file",
		.filename = hr_path_leaf(path),
		.type = "application/octet-stream",
		.p = p,
		.len = len}};
	const struct hr_api_call q = {.method = "POST",
	    .path = HR_RUNLOOP_PATH,
	    .id = c->id,
	    .rest = "/upload_file",
	    .parts = parts,
	    .parts_n = 2,
	    .raw = true};

	return hr_api_json(&c->api, &q, NULL, err);
}

/* Publishes a port: the older route returns an address, the newer one a key for it. */
static int
r_publish(struct hr_cloud *c, int port, struct hr_err *err)
{
	struct json_object *body = hr_json_object(err, "port", json_object_new_int(port), NULL),
			   *o = NULL;
	const char *key, *token;
	struct hr_err mine = {0};
	int r = -1;

	if (body == NULL)
		return -1;
	if (hr_runloop_post(c, c->id, "/create_tunnel", body, &o, &mine) == 0) {
		r = hr_field_text(HR_RUNLOOP_WHO, "the tunnel", o, "url", &key, err);
		if (r == 0)
			r = hr_text_set(&c->url, key, err);
	} else if (mine.code != HR_E_NO_SANDBOX) {
		if (err != NULL)
			*err = mine;
		r = -1;
	} else {
		body = hr_json_texts(err, "auth_mode", "authenticated", NULL);
		r = body != NULL ? hr_runloop_post(c, c->id, "/enable_tunnel", body, &o, err) : -1;
		if (r == 0)
			r = hr_field_text(HR_RUNLOOP_WHO, "the tunnel", o, "tunnel_key", &key, err);
		if (r == 0)
			r = hr_field_maybe(
			    HR_RUNLOOP_WHO, "the tunnel", o, "auth_token", &token, err);
		if (r == 0)
			r = hr_text_setf(
			    &c->url, err, "https://%d-%s.tunnel.runloop.ai", port, key);
		if (r == 0 && token != NULL) {
			r = hr_text_setf(&c->url_header, err,
			    "X-Runloop-Tunnel-Authorization: Bearer %s", token);
			if (c->h->secret != NULL)
				c->h->secret(c->h->arg, token);
		}
	}
	json_object_put(o);
	return r;
}

static const char *const lacks[] = {
    "Runloop: without a blueprint that has handrail in it (sandbox.runtime_container_image) each "
    "command runs in a new shell: its directory, variables and programs do not last, and a running "
    "command takes no input; stderr comes after its end; no Jupyter, MCP servers, browser, editor "
    "or live view.",
    NULL};

static const struct hr_cloud_ops ops = {
    .name = "runloop",
    .title = HR_RUNLOOP_WHO,
    .lacks = lacks,
    .open = r_open_api,
    .create = r_create,
    .wait = r_wait,
    .look = r_look,
    .list = r_list,
    .end = r_end,
    .pause = r_pause,
    .resume = r_resume,
    .keep = r_keep,
    .exec = hr_runloop_exec,
    .get = r_get,
    .put = hr_runloop_put,
    .launch = hr_runloop_launch,
    .publish = r_publish,
};

HR_CLOUD_KIND(hr_runloop_entry, "runloop", ops)
