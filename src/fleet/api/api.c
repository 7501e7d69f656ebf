/* Serves the Runtime API (doc/fleet.md): its routes, and the scope that each requires. */
#include "config.h"

#include "fleet/api/api_int.h"
#include "fleet/fleet_int.h"

#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "base/log.h"
#include "proto/json.h"

#define ANSWER_MAX (64u << 20)
#define AT_MAX 16384
#define HEAD_MAX 4096
#define FULL_S 15 /* value of Retry-After where a change may take a while */

int
hr_fleet_say(struct hr_fleet_answer *a, int status, const char *detail)
{
	a->status = status;
	hr_buf_reset(&a->body);
	hr_buf_addc(&a->body, '{');
	hr_json_put_named(&a->body, "detail", detail);
	hr_buf_addc(&a->body, '}');
	return -1;
}

void
hr_fleet_refuse(struct hr_fleet_answer *a, enum hr_fleet_result r, const struct hr_fleet_row *row,
    const struct hr_err *err)
{
	char text[500];

	switch (r) {
	case HR_FLEET_NOT_FOUND: (void)hr_fleet_say(a, 404, "Runtime not found"); break;
	case HR_FLEET_CONFLICT:
		(void)snprintf(text, sizeof(text), "the sandbox is in the state %s%s%s",
		    hr_fleet_state_name(row->state), row->reason[0] != '\0' ? ": " : "",
		    row->reason);
		(void)hr_fleet_say(a, 409, text);
		break;
	case HR_FLEET_UNABLE:
		(void)hr_fleet_say(
		    a, 501, "this back-end cannot pause sandboxes; stop it, or leave it running");
		break;
	case HR_FLEET_QUOTA:
		(void)hr_fleet_say(a, 429,
		    "the quota of this key is used up; stop a sandbox, or ask for a larger quota");
		a->retry_after_s = FULL_S;
		break;
	case HR_FLEET_NO_ROOM:
		(void)hr_fleet_say(a, 503, "there is no room for another sandbox here");
		a->retry_after_s = FULL_S;
		break;
	case HR_FLEET_DRAINED:
		(void)hr_fleet_say(
		    a, 503, "this service starts no new sandboxes: an operator has drained it");
		a->retry_after_s = FULL_S;
		break;
	case HR_FLEET_INVALID: (void)hr_fleet_say(a, 400, err->msg); break;
	case HR_FLEET_DECLINED: (void)hr_fleet_say(a, 409, err->msg); break;
	case HR_FLEET_REFUSED: (void)hr_fleet_say(a, 403, err->msg); break;
	case HR_FLEET_REVOKED: (void)hr_fleet_say(a, 401, HR_FLEET_KEY_GONE); break;
	case HR_FLEET_LATE:
		(void)hr_fleet_say(a, 503,
		    row == NULL || row->id[0] != '\0'
			? "the sandbox is not ready yet"
			: "too many requests for unknown sandboxes wait already");
		a->retry_after_s = HR_FLEET_BUSY_S;
		break;
	case HR_FLEET_LEAVING:
		a->status = 503;
		a->again = true;
		break;
	default:
		hr_log(HR_LOG_ERROR, "%s", err->msg);
		(void)hr_fleet_say(a, 503, "the service cannot do this now; see its log");
		a->retry_after_s = HR_FLEET_BUSY_S;
		break;
	}
}

void
hr_fleet_refuse_crowd(struct hr_fleet_answer *a)
{
	(void)hr_fleet_say(a, 429, "many requests of this key wait already");
	a->retry_after_s = HR_FLEET_BUSY_S;
}

bool
hr_fleet_call_turn(struct hr_fleet_call *c, struct hr_fleet_place *ret)
{
	bool taken = hr_fleet_turn_take(c->api->fleet, ret, c->key.id);

	if (!taken)
		hr_fleet_refuse_crowd(c->a);
	return taken;
}

/* the routes; rows with a "/" at their end take everything below it */
static const struct {
	const char *method, *path;
	int scope; /* 0: no key is required */
	hr_fleet_call_fn *handle;
} rows[] = {
    {"POST", "/start", HR_SCOPE_USE, hr_fleet_call_start},
    {"POST", "/stop", HR_SCOPE_USE, hr_fleet_call_stop},
    {"POST", "/pause", HR_SCOPE_USE, hr_fleet_call_pause},
    {"POST", "/resume", HR_SCOPE_USE, hr_fleet_call_resume},
    /* this row must precede the next one */
    {"GET", "/sessions/batch", HR_SCOPE_READ, hr_fleet_call_batch},
    {"GET", "/sessions/", HR_SCOPE_READ, hr_fleet_call_session},
    {"GET", "/runtime/", HR_SCOPE_READ, hr_fleet_call_runtime},
    {"GET", "/list", HR_SCOPE_READ, hr_fleet_call_list},
    {"GET", "/registry_prefix", HR_SCOPE_READ, hr_fleet_call_prefix},
    {"GET", "/image_exists", HR_SCOPE_READ, hr_fleet_call_image},
    {"POST", "/build", HR_SCOPE_USE, hr_fleet_call_build},
    {"GET", "/build_status", HR_SCOPE_READ, hr_fleet_call_build_status},
    {"GET", "/handrail/v1/events", HR_SCOPE_READ, hr_fleet_call_events},
    {"GET", "/handrail/v1/usage", HR_SCOPE_READ, hr_fleet_call_usage},
    {"GET", "/handrail/v1/network", HR_SCOPE_READ, hr_fleet_call_network},
    {"POST", "/handrail/v1/network", HR_SCOPE_USE, hr_fleet_call_set_network},
    {"GET", "/handrail/v1/network/log", HR_SCOPE_READ, hr_fleet_call_network_log},
    {"POST", "/handrail/v1/sandboxes/fork", HR_SCOPE_USE, hr_fleet_call_fork},
    {"GET", "/handrail/v1/snapshots", HR_SCOPE_READ, hr_fleet_call_snapshots},
    {"POST", "/handrail/v1/snapshots", HR_SCOPE_USE, hr_fleet_call_snapshot},
    {"POST", "/handrail/v1/snapshots/remove", HR_SCOPE_USE, hr_fleet_call_unsnapshot},
    {"GET", "/handrail/v1/", HR_SCOPE_ADMIN, hr_fleet_call_operator},
    {"POST", "/handrail/v1/", HR_SCOPE_ADMIN, hr_fleet_call_operator},
};
#define ROWS (sizeof(rows) / sizeof(*rows))

static bool
row_takes(size_t i, const char *path, size_t len)
{
	size_t n = strlen(rows[i].path);

	return rows[i].path[n - 1] == '/' ? len > n && strncmp(path, rows[i].path, n) == 0
					  : len == n && strncmp(path, rows[i].path, n) == 0;
}

int
hr_fleet_who(const struct hr_fleet_api *api, const struct hr_fleet_request *q, int scope,
    struct hr_fleet_key *ret, struct hr_fleet_answer *a)
{
	struct hr_store *s = api->fleet->store;
	struct hr_err err = {0};
	int found = 0;

	if (*q->api_key != '\0') {
		(void)pthread_mutex_lock(&api->fleet->lock);
		found = s->ops->key_find(s, q->api_key, ret, &err);
		(void)pthread_mutex_unlock(&api->fleet->lock);
	}
	if (found < 0) {
		hr_fleet_refuse(a, HR_FLEET_BROKEN, NULL, &err);
		return -1;
	}
	if (found == 0)
		return hr_fleet_say(a, 401, "X-API-Key is missing, or no key of this service");
	if ((ret->scopes & scope) == 0)
		return hr_fleet_say(a, 403, "this key is not for that");
	return 0;
}

static void
handle_row(struct hr_fleet_call *c, size_t i, const char *path)
{
	size_t n = strlen(rows[i].path);

	if (hr_fleet_who(c->api, c->q, rows[i].scope, &c->key, c->a) != 0)
		return;
	if (strcmp(c->q->method, "POST") == 0 && rows[i].handle != hr_fleet_call_build &&
	    c->q->body_len > 0 &&
	    (hr_json_decode(c->q->body, c->q->body_len, &c->body, NULL) != 0 ||
		hr_json_has_null(c->body))) {
		(void)hr_fleet_say(c->a, 400, "the body is not JSON, or has a null character");
		return;
	}
	c->rest = rows[i].path[n - 1] == '/' ? path + n : "";
	rows[i].handle(c);
}

static void
handle_open(const struct hr_fleet_api *api, const char *path, struct hr_fleet_answer *a)
{
	if (strcmp(path, "/metrics") == 0) {
		hr_fleet_handle_metrics(api, a);
		return;
	}
	a->status = 200;
	hr_buf_adds(&a->body, "{\"status\":\"ok\"}");
}

void
hr_fleet_handle_call(
    const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct hr_fleet_answer *a)
{
	static const char *const open[] = {"/health", "/alive", "/ready", "/metrics"};
	struct hr_fleet_call c = {.api = api, .q = q, .a = a};
	size_t len = strcspn(q->uri, "?");
	bool other = false;
	char path[1024];
	size_t i;

	if (len >= sizeof(path)) {
		(void)hr_fleet_say(a, 404, "Not Found");
		return;
	}
	memcpy(path, q->uri, len);
	path[len] = '\0';
	c.query = q->uri[len] == '?' ? q->uri + len + 1 : "";
	for (i = 0; i < sizeof(open) / sizeof(*open); i++)
		if (strcmp(path, open[i]) == 0) {
			handle_open(api, path, a);
			return;
		}
	for (i = 0; i < ROWS && a->status == 0; i++) {
		if (!row_takes(i, path, len))
			continue;
		other = true;
		if (strcmp(q->method, rows[i].method) == 0)
			handle_row(&c, i, path);
	}
	json_object_put(c.body);
	if (a->status == 0)
		(void)hr_fleet_say(
		    a, other ? 405 : 404, other ? "Method Not Allowed" : "Not Found");
}

void
hr_fleet_handle(
    const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct hr_fleet_answer *ret)
{
	memset(ret, 0, sizeof(*ret));
	ret->type = "application/json";
	hr_buf_init(&ret->body, ANSWER_MAX);
	hr_buf_init(&ret->at, AT_MAX);
	hr_buf_init(&ret->head, HEAD_MAX);
	if (q->route == HR_FLEET_ROUTE_CONSOLE)
		hr_fleet_handle_console(api, q, ret);
	else if (q->route == HR_FLEET_ROUTE_E2B)
		hr_fleet_handle_e2b(api, q, ret);
	else if (q->route != HR_FLEET_ROUTE_NONE)
		hr_fleet_handle_route(api, q, ret);
	else
		hr_fleet_handle_call(api, q, ret);
	if (hr_buf_check(&ret->body, NULL) != 0)
		(void)hr_fleet_say(ret, 503, "out of memory");
}

void
hr_fleet_answer_done(struct hr_fleet_answer *a)
{
	hr_fleet_stream_end(a->stream);
	hr_buf_done(&a->body);
	hr_buf_done(&a->at);
	hr_buf_done(&a->head);
}
