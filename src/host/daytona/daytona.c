/* Implements the back-end "daytona": sandboxes of Daytona (doc/clouds.md, "Daytona"). Its API
 * creates them and reports their state; the toolbox, a daemon in each sandbox, runs commands and
 * transfers files. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/cloud/cloud.h"
#include "base/clock.h"
#include "base/err.h"
#include "proto/json.h"

#define WHO "Daytona"
#define AUTO_STOP_MIN 60
#define WAIT_S 600
#define FIRST_WAIT_MS 100
#define MOST_WAIT_MS 1000
#define FOREVER_S 86400 /* seconds for a command without a limit */
#define GRACE_S 30
#define SESSION "action-execution-server"

static const struct hr_api_rule rule = {
    .again = {{.failures =
		   HR_REST_UNSENT | HR_REST_LIMITED | HR_REST_BUSY | HR_REST_GATEWAY | HR_REST_LATE,
	.always = HR_REST_UNDONE,
	.attempts = 5,
	.first_ms = 200,
	.most_ms = 8000,
	.jitter_percent = 50,
	.after_max_s = 60}}};

static int
authorize(struct hr_api *api, const char *key, struct hr_err *err)
{
	HR_FREE char *value = NULL;

	if (hr_text_setf(&value, err, "Bearer %s", key) != 0)
		return -1;
	if (hr_api_header(api, "Authorization", value, true, err) != 0 ||
	    hr_api_header(api, "X-Daytona-Source", "handrail", false, err) != 0)
		return -1;
	/* newer daemons separate stdout and stderr only for clients of such a version */
	return hr_api_header(api, "X-Daytona-SDK-Version", "0.226.1", false, err);
}

static int
d_open_api(struct hr_cloud *c, struct hr_err *err)
{
	const char *url = hr_cloud_env(c, "DAYTONA_API_URL", "https://app.daytona.io/api");
	HR_FREE char *key = hr_cloud_key(c, "DAYTONA_API_KEY", err);

	if (key == NULL || hr_api_init(&c->api, WHO, &rule, url, err) != 0)
		return -1;
	return authorize(&c->api, key, err);
}

/* Connects to the sandbox's toolbox at c->address. */
static int
d_plane(struct hr_cloud *c, struct hr_err *err)
{
	HR_FREE char *key = hr_cloud_key(c, "DAYTONA_API_KEY", err);

	hr_api_done(&c->plane);
	if (key == NULL || hr_api_init(&c->plane, WHO, &rule, c->address, err) != 0)
		return -1;
	return authorize(&c->plane, key, err);
}

/* Reads the API's data of a sandbox. *ret_state is borrowed. */
static int
d_take(struct hr_cloud *c, struct json_object *o, const char **ret_state, struct hr_err *err)
{
	const char *id, *url;

	if (hr_field_text(WHO, "a sandbox", o, "id", &id, err) != 0 ||
	    hr_text_set(&c->id, id, err) != 0 ||
	    hr_field_text(WHO, "a sandbox", o, "state", ret_state, err) != 0 ||
	    hr_field_maybe(WHO, "a sandbox", o, "toolboxProxyUrl", &url, err) != 0)
		return -1;
	if (c->plane.rest != NULL)
		return 0;
	if (url != NULL && *url != '\0') {
		int n = (int)strlen(url);

		while (n > 0 && url[n - 1] == '/')
			n--;
		if (hr_text_setf(&c->address, err, "%.*s/%s", n, url, c->id) != 0)
			return -1;
	} else if (hr_text_setf(&c->address, err, "%s/toolbox/%s/toolbox",
		       hr_cloud_env(c, "DAYTONA_API_URL", "https://app.daytona.io/api"),
		       c->id) != 0) {
		return -1;
	}
	return d_plane(c, err);
}

static struct json_object *
create_body(struct hr_cloud *c, struct hr_err *err)
{
	bool stays = strcmp(hr_cloud_env(c, "DAYTONA_DISABLE_AUTO_STOP", ""), "true") == 0;
	struct json_object *labels = hr_cloud_labels(c);

	(void)hr_json_set(labels, "OpenHands_SID", json_object_new_string(c->h->sid), NULL);
	return hr_json_object(err, "snapshot", hr_json_maybe(c->image), "env",
	    json_object_new_object(), "labels", labels, "public", json_object_new_boolean(false),
	    "target", json_object_new_string(hr_cloud_env(c, "DAYTONA_TARGET", "eu")),
	    "autoStopInterval", json_object_new_int(stays ? 0 : AUTO_STOP_MIN), NULL);
}

static int
d_create(struct hr_cloud *c, bool *unsure, struct hr_err *err)
{
	HR_PUT struct json_object *body = create_body(c, err);
	const struct hr_api_call q = {
	    .method = "POST", .path = "/sandbox", .body = body, .once = true};
	HR_CLEAN(hr_api_answer_done) struct hr_api_answer a = {0};
	const char *state;
	int r;

	*unsure = false;
	if (body == NULL)
		return -1;
	r = hr_api_do(&c->api, &q, &a, err);
	*unsure = r != 0 && a.unsure;
	c->unmade = r != 0 && !a.unsure;
	if (r == 0)
		r = d_take(c, a.json, &state, err);
	return r;
}

/* Requests "/sandbox/ID/WHAT"; *ret (may be NULL) belongs to the caller. */
static int
about(struct hr_cloud *c, const char *method, const char *id, const char *what,
    struct json_object **ret, struct hr_err *err)
{
	const struct hr_api_call q = {
	    .method = method, .path = "/sandbox/", .id = id, .rest = what};

	return hr_api_json(&c->api, &q, ret, err);
}

/* Returns 1 in the wanted state, or 0 before that. Unknown states count as transitional. */
static int
arrived(struct json_object *o, const char *state, const char *wanted, struct hr_err *err)
{
	if (strcmp(state, wanted) == 0)
		return 1;
	if (strcmp(state, "error") == 0 || strcmp(state, "build_failed") == 0)
		return hr_err_set(err, HR_E_RUNTIME,
		    WHO ": the sandbox failed, state %s: error reason: %.300s", state,
		    hr_json_text_or(o, "errorReason", "none was reported"));
	if (strcmp(state, "destroyed") == 0 || strcmp(state, "destroying") == 0)
		return hr_err_set(err, HR_E_DISCONNECTED, WHO ": the sandbox is %s", state);
	return 0;
}

static int
wait_state(struct hr_cloud *c, const char *wanted, struct hr_err *err)
{
	int64_t end = hr_now_ms() + WAIT_S * 1000;
	unsigned ms = FIRST_WAIT_MS;
	int there = 0;

	while (there == 0) {
		HR_PUT struct json_object *o = NULL;
		const char *state;

		if (about(c, "GET", c->id, "", &o, err) != 0)
			return -1;
		there = d_take(c, o, &state, err) == 0 ? arrived(o, state, wanted, err) : -1;
		if (there == 0 && hr_now_ms() > end)
			there = hr_err_set(err, HR_E_RUNTIME_TIMEOUT,
			    WHO ": the sandbox did not become %s within %d seconds; its state is "
				"\"%s\"",
			    wanted, WAIT_S, state);
		if (there == 0)
			(void)hr_rest_wait(-1, ms);
		ms = ms * 11 / 10 < MOST_WAIT_MS ? ms * 11 / 10 : MOST_WAIT_MS;
	}
	return there < 0 ? -1 : 0;
}

static int
d_wait(struct hr_cloud *c, struct hr_err *err)
{
	return wait_state(c, "started", err);
}

static const char *const words[][2] = {{"started", "running"}, {"stopped", "paused"},
    {"paused", "paused"}, {"archived", "paused"}, {"destroyed", "gone"}, {"destroying", "gone"},
    {"error", "exited"}, {"build_failed", "exited"}, {NULL, NULL}};
static const struct hr_cloud_shape shape = {
    .id = "id", .labels = "labels", .state = "state", .otherwise = "unknown", .words = words};

static int
d_look(struct hr_cloud *c, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_err mine = {0};
	const char *state = "destroyed";
	int r = about(c, "GET", c->id, "", &o, &mine);

	if (r == 0)
		r = d_take(c, o, &state, &mine);
	r = hr_api_or_gone(r, &mine, err);
	if (r == 0)
		(void)snprintf(c->state, sizeof(c->state), "%s", hr_cloud_word(&shape, state));
	return r;
}

/* Reads one page: an array, or {"items", "nextCursor"}; copies the next cursor. */
static int
one_page(struct json_object *page, const char *run, char cursor[512], hr_cloud_found_fn *fn,
    void *arg, struct hr_err *err)
{
	struct json_object *list = page;
	const char *next = NULL;

	if (!json_object_is_type(page, json_type_array) &&
	    (hr_field_of(WHO, "the list", page, "items", json_type_array, &list, err) != 0 ||
		hr_field_maybe(WHO, "the list", page, "nextCursor", &next, err) != 0))
		return -1;
	(void)snprintf(cursor, 512, "%s", next != NULL ? next : "");
	return hr_cloud_entries(WHO, &shape, list, run, fn, arg, err);
}

static int
d_list(struct hr_cloud *c, const char *run, hr_cloud_found_fn *fn, void *arg, struct hr_err *err)
{
	char cursor[512] = "";
	unsigned pages = 0;
	int r;

	do {
		struct hr_api_call q = {.method = "GET"};
		HR_PUT struct json_object *page = NULL;
		HR_BUF(b, 8192);
		HR_BUF(labels, 4096);

		if (hr_cloud_page(WHO, &pages, err) != 0)
			return -1;
		hr_buf_adds(&b, "/sandbox");
		if (run != NULL) {
			hr_buf_addf(&labels, "{\"handrail_run\": \"%s\"}", run);
			hr_buf_adds(&b, "?labels=");
			hr_http_escape(&b, hr_buf_str(&labels));
		}
		if (*cursor != '\0') {
			hr_buf_adds(&b, run != NULL ? "&cursor=" : "?cursor=");
			q.id = cursor;
		}
		q.path = hr_buf_str(&b);
		r = hr_api_json(&c->api, &q, &page, err);
		if (r == 0)
			r = one_page(page, run, cursor, fn, arg, err);
	} while (r == 0 && *cursor != '\0');
	return r < 0 ? -1 : 0;
}

static int
d_end(struct hr_cloud *c, const char *id, struct hr_err *err)
{
	struct hr_err mine = {0};
	int r = about(c, "DELETE", id, "?force=true", NULL, &mine);

	return hr_api_or_gone(r, &mine, err);
}

static int
d_pause(struct hr_cloud *c, struct hr_err *err)
{
	return about(c, "POST", c->id, "/stop", NULL, err) == 0 ? wait_state(c, "stopped", err)
								: -1;
}

static int
d_resume(struct hr_cloud *c, struct hr_err *err)
{
	return about(c, "POST", c->id, "/start", NULL, err) == 0 ? d_wait(c, err) : -1;
}

/* ---- the toolbox ---- */

static int
d_exec(struct hr_cloud *c, const struct hr_cloud_command *q, struct hr_cloud_end *ret,
    struct hr_err *err)
{
	unsigned seconds = q->timeout_ms / 1000 + (q->timeout_ms % 1000 != 0);
	bool has_env = q->env != NULL && *q->env != NULL;
	HR_PUT struct json_object *body = hr_json_object(err, "command",
	    json_object_new_string(q->line), "cwd", hr_json_maybe(q->cwd), "envs",
	    has_env ? hr_cloud_env_object(q->env, err) : HR_JSON_NONE, "timeout",
	    seconds > 0 ? json_object_new_int64(seconds) : HR_JSON_NONE, NULL);
	struct json_object *v;
	struct hr_api_call call = {.method = "POST",
	    .path = "/process/execute",
	    .body = body,
	    .once = true,
	    .timeout_s = seconds > 0 ? seconds + GRACE_S : FOREVER_S};
	struct hr_err mine = {0};
	HR_CLEAN(hr_api_answer_done) struct hr_api_answer a = {0};
	int code = -1;
	int r;

	*ret = (struct hr_cloud_end){.code = -1};
	if (body == NULL)
		return -1;
	r = hr_api_do(&c->plane, &call, &a, &mine);
	if (r == 0)
		r = hr_field_code(WHO, "the answer to a command", a.json, "exitCode", &code, &mine);
	if (r == 0)
		r = hr_field_of(
		    WHO, "the answer to a command", a.json, "result", json_type_string, &v, &mine);
	if (r == 0) {
		ret->code = code;
		if (q->output != NULL)
			q->output(q->arg, 1, json_object_get_string(v),
			    (size_t)json_object_get_string_len(v));
	} else if (seconds > 0 && mine.status == 408) {
		ret->timed_out = true;
		r = 0;
	} else if (a.unsure) {
		r = hr_err_set(&mine, HR_E_PROTO,
		    WHO ": the answer to the command was lost, and Daytona keeps no copy: its exit "
			"status and output are unknown");
	}
	return r != 0 ? hr_err_pass(err, &mine) : 0;
}

static int
d_get(struct hr_cloud *c, const char *path, struct hr_buf *b, struct hr_err *err)
{
	const struct hr_api_call q = {
	    .method = "GET", .path = "/files/download?path=", .id = path, .raw = true};
	HR_CLEAN(hr_api_answer_done) struct hr_api_answer a = {0};

	return hr_api_file(&c->plane, &q, path, b, &a, err);
}

static int
d_put(struct hr_cloud *c, const char *path, const char *p, size_t len, struct hr_err *err)
{
	const struct hr_api_part parts[] = {
	    {.name = "files[0].path", .p = path, .len = strlen(path)},
	    {.name = "files[0].file",
		.filename = path,
		.type = "application/octet-stream",
		.p = p,
		.len = len}};
	const struct hr_api_call q = {.method = "POST",
	    .path = "/files/bulk-upload",
	    .parts = parts,
	    .parts_n = 2,
	    .raw = true};

	return hr_api_json(&c->plane, &q, NULL, err);
}

/* Accepts a session that exists after a restart. */
static int
d_launch(struct hr_cloud *c, const char *line, struct hr_err *err)
{
	HR_PUT struct json_object *session = hr_json_texts(err, "sessionId", SESSION, NULL);
	HR_PUT struct json_object *command = hr_json_object(err, "command",
	    json_object_new_string(line), "runAsync", json_object_new_boolean(true), NULL);
	struct hr_api_call q = {
	    .method = "POST", .path = "/process/session", .body = session, .plain = true};
	struct hr_api_answer a = {0};
	const char *id;
	int r = session != NULL && command != NULL ? 0 : -1;

	if (r == 0)
		r = hr_api_do(&c->plane, &q, &a, err);
	if (r == 0 && a.status >= 400 && a.status != 409)
		r = hr_err_set(err, HR_E_RUNTIME,
		    WHO ": the session for the server is not made: status %ld", a.status);
	hr_api_answer_done(&a);
	q = (struct hr_api_call){.method = "POST",
	    .path = "/process/session/" SESSION "/exec",
	    .body = command,
	    .once = true};
	if (r == 0) {
		r = hr_api_do(&c->plane, &q, &a, err);
		if (r == 0)
			r = hr_field_text(
			    WHO, "the answer to a command", a.json, "cmdId", &id, err);
		hr_api_answer_done(&a);
	}
	return r;
}

static int
d_publish(struct hr_cloud *c, int port, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	const char *url, *token;
	char what[60];
	int r;

	(void)snprintf(what, sizeof(what), "/ports/%d/preview-url", port);
	r = about(c, "GET", c->id, what, &o, err);
	if (r == 0)
		r = hr_field_text(WHO, "the preview link", o, "url", &url, err);
	if (r == 0)
		r = hr_field_maybe(WHO, "the preview link", o, "token", &token, err);
	if (r == 0)
		r = hr_text_set(&c->url, url, err);
	if (r == 0 && token != NULL) {
		r = hr_text_setf(&c->url_header, err, "x-daytona-preview-token: %s", token);
		if (c->h->secret != NULL)
			c->h->secret(c->h->arg, token);
	}
	return r;
}

static const char *const lacks[] = {
    "Daytona: without a snapshot that has handrail in it (sandbox.runtime_container_image) each "
    "command runs in a new shell: its directory, variables and programs do not last, and a running "
    "command takes no input; stdout and stderr come as one, after its end; no Jupyter, MCP "
    "servers, browser, editor or live view.",
    NULL};

static const struct hr_cloud_ops ops = {
    .name = "daytona",
    .title = WHO,
    .lacks = lacks,
    .open = d_open_api,
    .create = d_create,
    .wait = d_wait,
    .look = d_look,
    .list = d_list,
    .end = d_end,
    .pause = d_pause,
    .resume = d_resume,
    .exec = d_exec,
    .get = d_get,
    .put = d_put,
    .launch = d_launch,
    .publish = d_publish,
};

HR_CLOUD_KIND(hr_daytona_entry, "daytona", ops)
