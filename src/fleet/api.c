/* The Runtime API (doc/fleet.md): which request is which, who may ask it, and the objects in the
 * answers. */
#include "config.h"

#include "fleet/api.h"
#include "fleet/request.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/log.h"
#include "base/percent.h"
#include "proto/json.h"

#define ANSWER_MAX (64u << 20)
#define AT_MAX 16384
#define EVENTS_SHOWN 50
#define BUSY_S 2  /* Retry-After of what will soon be different */
#define FULL_S 15 /* and of what may take a while */

int
hr_fleet_say(struct hr_fleet_answer *a, int status, const char *detail)
{
	a->status = status;
	hr_buf_reset(&a->body);
	hr_buf_adds(&a->body, "{\"detail\":");
	(void)hr_json_put_str(&a->body, detail, strlen(detail), HR_JSON_REPLACE);
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
	case HR_FLEET_QUOTA:
		(void)hr_fleet_say(a, 429,
		    "the quota of this key is used up; stop a sandbox, or ask for a larger one");
		a->retry_after_s = FULL_S;
		break;
	case HR_FLEET_NO_ROOM:
		(void)hr_fleet_say(a, 503, "there is no room for another sandbox here");
		a->retry_after_s = FULL_S;
		break;
	case HR_FLEET_LATE:
		(void)hr_fleet_say(a, 503, "the sandbox is not ready yet");
		a->retry_after_s = BUSY_S;
		break;
	default:
		hr_log(HR_LOG_ERROR, "%s", err->msg);
		(void)hr_fleet_say(a, 503, "the service cannot do this now; see its log");
		a->retry_after_s = BUSY_S;
		break;
	}
}

/* ---- objects ---- */

static void
put(struct hr_buf *b, const char *name, const char *text)
{
	hr_buf_addf(b, "\"%s\":", name);
	(void)hr_json_put_str(b, text, strlen(text), HR_JSON_REPLACE);
	hr_buf_addc(b, ',');
}

/* What clients know of the states. */
static const struct {
	const char *status, *pod;
} shown[HR_FLEET_STATES] = {
    [HR_FLEET_STARTING] = {"starting", "pending"},
    [HR_FLEET_RUNNING] = {"running", "ready"},
    [HR_FLEET_PAUSING] = {"paused", "not found"},
    [HR_FLEET_PAUSED] = {"paused", "not found"},
    [HR_FLEET_RESUMING] = {"running", "pending"},
    [HR_FLEET_STOPPING] = {"stopped", "not found"},
    [HR_FLEET_STOPPED] = {"stopped", "not found"},
    [HR_FLEET_DIED] = {"error", "failed"},
    [HR_FLEET_WARMING] = {"starting", "pending"},
    [HR_FLEET_WARM] = {"running", "ready"},
};

/* An address as the client came, so that it can go on in the same way. */
static void
put_url(struct hr_buf *b, const struct hr_fleet_api *api, const struct hr_fleet_request *q,
    const char *id)
{
	struct hr_buf url;
	const char *port = strrchr(q->host, ':');

	hr_buf_init(&url, 4096);
	if (api->by_name && api->domain != NULL)
		hr_buf_addf(&url, "%s://%s.%s%s", q->scheme, id, api->domain,
		    port != NULL && strspn(port + 1, "0123456789") == strlen(port + 1) ? port : "");
	else if (api->public_url != NULL)
		hr_buf_addf(&url, "%s/%s", api->public_url, id);
	else
		hr_buf_addf(&url, "%s://%s/%s", q->scheme, q->host, id);
	(void)hr_json_put_str(b, hr_buf_str(&url), url.len, HR_JSON_REPLACE);
	hr_buf_done(&url);
}

static void
put_hosts(struct hr_buf *b, const struct hr_fleet_api *api, const struct hr_fleet_request *q,
    const struct hr_fleet_row *row)
{
	const char *comma = "";

	hr_buf_adds(b, ",\"work_hosts\":{");
	for (int i = 0; i < 2 && api->domain != NULL; i++) {
		if (row->app_ports[i] <= 0)
			continue;
		hr_buf_addf(b, "%s\"%s://work-%d-%s.%s\":%d", comma, q->scheme, i + 1, row->id,
		    api->domain, row->app_ports[i]);
		comma = ",";
	}
	hr_buf_addc(b, '}');
}

/* Without its last brace. */
static void
put_object(struct hr_buf *b, const struct hr_fleet_api *api, const struct hr_fleet_request *q,
    const struct hr_fleet_row *row)
{
	hr_buf_addc(b, '{');
	put(b, "runtime_id", row->id);
	put(b, "session_id", row->session);
	put(b, "session_api_key", row->session_key);
	put(b, "status", shown[row->state].status);
	put(b, "pod_status", shown[row->state].pod);
	put(b, "state", hr_fleet_state_name(row->state));
	put(b, "reason", row->reason);
	hr_buf_adds(b, "\"url\":");
	put_url(b, api, q, row->id);
	put_hosts(b, api, q, row);
	hr_buf_addf(b,
	    ",\"resource_factor\":%lld,\"created\":%lld,\"active\":%lld,\"resumed\":%lld,"
	    "\"restart_count\":0,\"restart_reasons\":[]",
	    (long long)row->factor, (long long)row->created, (long long)row->active,
	    (long long)row->resumed);
}

static void
answer_object(const struct hr_fleet_api *api, const struct hr_fleet_request *q,
    const struct hr_fleet_row *row, struct hr_fleet_answer *a)
{
	a->status = 200;
	put_object(&a->body, api, q, row);
	hr_buf_addc(&a->body, '}');
}

struct events {
	struct hr_buf *b;
	bool any;
	struct hr_buf logs; /* the last ones */
};

static void
put_event(void *arg, int64_t seq, int64_t at, const char *id, const char *what, const char *detail)
{
	struct events *e = arg;

	if (strcmp(what, HR_FLEET_EVENT_LOGS) == 0) {
		hr_buf_reset(&e->logs);
		hr_buf_adds(&e->logs, detail);
		return;
	}
	hr_buf_addf(e->b, "%s{\"id\":%lld,\"time\":%lld,", e->any ? "," : "", (long long)seq,
	    (long long)at);
	put(e->b, "runtime_id", id);
	put(e->b, "what", what);
	hr_buf_adds(e->b, "\"detail\":");
	(void)hr_json_put_str(e->b, detail, strlen(detail), HR_JSON_REPLACE);
	hr_buf_addc(e->b, '}');
	e->any = true;
}

/* ---- what is asked ---- */

struct call {
	const struct hr_fleet_api *api;
	const struct hr_fleet_request *q;
	struct hr_fleet_answer *a;
	struct hr_fleet_key key;
	const char *rest;         /* of the path, behind a row's that ends in "/" */
	const char *query;        /* "" for none */
	struct json_object *body; /* of a POST; NULL: it is none, or null */
};

/* The value of a name in the query, decoded; "" where it is not there. */
static const char *
query_value(struct hr_buf *b, const char *query, const char *name)
{
	size_t n = strlen(name), len;

	hr_buf_init(b, AT_MAX);
	for (; *query != '\0'; query += len + (query[len] != '\0')) {
		len = strcspn(query, "&");
		if (len > n && strncmp(query, name, n) == 0 && query[n] == '=')
			hr_percent_decode(b, query + n + 1, len - n - 1, true);
	}
	return hr_buf_str(b);
}

static void
handle_start(struct call *c)
{
	const char *wrong = hr_fleet_request_wrong(c->body);
	struct hr_fleet_row row = {.request = NULL};
	enum hr_fleet_result r;
	struct hr_err err = {0};
	struct hr_buf text, wait;
	char shape[HR_FLEET_SHAPE];
	char id[HR_FLEET_ID];
	bool ready;

	if (wrong != NULL) {
		(void)hr_fleet_say(c->a, 400, wrong);
		return;
	}
	hr_buf_init(&text, 2 * HR_FLEET_BODY_MAX);
	if (hr_fleet_request_shape(c->body, c->api->fleet->set.image, shape, &err) != 0 ||
	    hr_json_put(&text, c->body) != 0 || hr_buf_check(&text, NULL) != 0) {
		(void)hr_fleet_say(c->a, 400, "the body has no JSON form");
		hr_buf_done(&text);
		return;
	}
	r = hr_fleet_start(c->api->fleet, &c->key, hr_json_text_at(c->body, "session_id"),
	    hr_buf_str(&text), hr_fleet_request_factor(c->body), shape, &row, &err);
	hr_buf_done(&text);
	ready = strcmp(query_value(&wait, c->query, "wait"), "ready") == 0;
	hr_buf_done(&wait);
	if (r == HR_FLEET_OK && ready) {
		(void)snprintf(id, sizeof(id), "%s", row.id);
		hr_fleet_row_done(&row);
		r = hr_fleet_wait(c->api->fleet, id, &row, &err);
		if (r == HR_FLEET_OK && row.state != HR_FLEET_RUNNING)
			r = HR_FLEET_CONFLICT;
	}
	if (r == HR_FLEET_OK)
		answer_object(c->api, c->q, &row, c->a);
	else
		hr_fleet_refuse(c->a, r, &row, &err);
	hr_fleet_row_done(&row);
}

static void
change(struct call *c, enum hr_fleet_change what)
{
	const char *id = hr_json_text_at(c->body, "runtime_id");
	struct hr_fleet_row row = {.request = NULL};
	enum hr_fleet_result r;
	struct hr_err err = {0};

	if (id == NULL) {
		(void)hr_fleet_say(c->a, 400, "the body is to be {\"runtime_id\": TEXT}");
		return;
	}
	r = hr_fleet_change(c->api->fleet, c->key.id, id, what, &row, &err);
	if (r == HR_FLEET_OK)
		answer_object(c->api, c->q, &row, c->a);
	else
		hr_fleet_refuse(c->a, r, &row, &err);
	hr_fleet_row_done(&row);
}

static void
handle_stop(struct call *c)
{
	change(c, HR_FLEET_STOP);
}

static void
handle_pause(struct call *c)
{
	change(c, HR_FLEET_PAUSE);
}

static void
handle_resume(struct call *c)
{
	change(c, HR_FLEET_RESUME);
}

/* What one that is there has printed, if it is asked for: that takes the engine a moment. */
static void
ask_logs(struct call *c, const struct hr_fleet_row *row, struct hr_buf *logs)
{
	struct hr_fleet *f = c->api->fleet;
	struct hr_err err = {0};
	char *text = NULL;
	bool may;

	/* it waits like those who wait for a sandbox */
	(void)pthread_mutex_lock(&f->lock);
	may = f->engine->logs != NULL && f->waiting < f->set.waiting;
	f->waiting += may;
	(void)pthread_mutex_unlock(&f->lock);
	if (!may)
		return;
	if (f->engine->logs(f->engine_self, row->id, &text, &err) == 0) {
		hr_buf_reset(logs);
		hr_buf_adds(logs, text);
	} else {
		hr_log(HR_LOG_INFO, "sandbox %s: its log: %.400s", row->id, err.msg);
	}
	free(text);
	(void)pthread_mutex_lock(&f->lock);
	f->waiting--;
	(void)pthread_mutex_unlock(&f->lock);
}

/* One sandbox with all that is told of it, by its id or its session's. */
static void
look(struct call *c, bool by_session)
{
	struct hr_fleet *f = c->api->fleet;
	struct hr_fleet_row row = {.request = NULL};
	struct hr_buf *b = &c->a->body;
	struct events e = {.b = b};
	struct hr_err err = {0};
	struct hr_buf name;
	bool now;
	int found;

	now = strcmp(query_value(&name, c->query, "logs"), "true") == 0;
	hr_buf_done(&name);
	hr_buf_init(&e.logs, 4 * HR_FLEET_LOGS);
	hr_buf_init(&name, 1024);
	hr_percent_decode(&name, c->rest, strlen(c->rest), false);
	(void)pthread_mutex_lock(&f->lock);
	found = by_session ? f->store->ops->find_session(
				 f->store, c->key.id, hr_buf_str(&name), true, &row, &err)
			   : f->store->ops->find(f->store, hr_buf_str(&name), &row, &err);
	if (found == 1 && row.key != c->key.id)
		found = 0;
	if (found == 1) {
		c->a->status = 200;
		put_object(b, c->api, c->q, &row);
		hr_buf_adds(b, ",\"container_statuses\":[],\"events\":[");
		if (f->store->ops->events(
			f->store, 0, row.id, -1, EVENTS_SHOWN, put_event, &e, &err) != 0)
			found = -1;
	}
	(void)pthread_mutex_unlock(&f->lock);
	if (found == 1) {
		if (now && hr_fleet_holds_room(row.state))
			ask_logs(c, &row, &e.logs);
		/* a container that never ran has left nothing but what the engine said */
		if (row.state == HR_FLEET_DIED && e.logs.len == 0)
			hr_buf_adds(&e.logs, row.reason);
		hr_buf_adds(b, "],\"pod_logs\":");
		(void)hr_json_put_str(b, hr_buf_str(&e.logs), e.logs.len, HR_JSON_REPLACE);
		hr_buf_addc(b, '}');
	}
	if (found != 1)
		hr_fleet_refuse(c->a, found < 0 ? HR_FLEET_BROKEN : HR_FLEET_NOT_FOUND, &row, &err);
	hr_fleet_row_done(&row);
	hr_buf_done(&e.logs);
	hr_buf_done(&name);
}

static void
handle_session(struct call *c)
{
	look(c, true);
}

static void
handle_runtime(struct call *c)
{
	look(c, false);
}

struct list {
	struct call *c;
	bool any, begun;            /* begun: behind `after` */
	const char *status, *after; /* "": any, from the first one on */
	long left;
};

static void
put_listed(void *arg, const struct hr_fleet_row *row)
{
	struct list *l = arg;

	if (!l->begun) {
		l->begun = strcmp(row->id, l->after) == 0;
		return;
	}
	if (l->left == 0 ||
	    (*l->status != '\0' && strcmp(l->status, shown[row->state].status) != 0 &&
		strcmp(l->status, hr_fleet_state_name(row->state)) != 0))
		return;
	l->left--;
	if (l->any)
		hr_buf_addc(&l->c->a->body, ',');
	l->any = true;
	put_object(&l->c->a->body, l->c->api, l->c->q, row);
	hr_buf_addc(&l->c->a->body, '}');
}

static void
handle_list(struct call *c)
{
	struct hr_fleet *f = c->api->fleet;
	struct list l = {.c = c};
	struct hr_err err = {0};
	struct hr_buf all, status, after, limit;
	bool live = strcmp(query_value(&all, c->query, "all"), "true") != 0;
	char *end;
	int rc = 0;

	l.status = query_value(&status, c->query, "status");
	l.after = query_value(&after, c->query, "after");
	l.begun = *l.after == '\0';
	l.left = strtol(query_value(&limit, c->query, "limit"), &end, 10);
	if (end == hr_buf_str(&limit) && *end == '\0')
		l.left = LONG_MAX;
	if (*end != '\0' || l.left <= 0) {
		(void)hr_fleet_say(c->a, 400, "limit is a number above 0");
		goto out;
	}
	c->a->status = 200;
	hr_buf_adds(&c->a->body, "{\"runtimes\":[");
	(void)pthread_mutex_lock(&f->lock);
	rc = f->store->ops->each(f->store, c->key.id, live, put_listed, &l, &err);
	(void)pthread_mutex_unlock(&f->lock);
	hr_buf_adds(&c->a->body, "]}");
	if (rc != 0)
		hr_fleet_refuse(c->a, HR_FLEET_BROKEN, NULL, &err);
out:
	hr_buf_done(&all);
	hr_buf_done(&status);
	hr_buf_done(&after);
	hr_buf_done(&limit);
}

static void
handle_prefix(struct call *c)
{
	c->a->status = 200;
	hr_buf_adds(&c->a->body, "{\"registry_prefix\":");
	(void)hr_json_put_str(
	    &c->a->body, c->api->registry_prefix, strlen(c->api->registry_prefix), HR_JSON_REPLACE);
	hr_buf_addc(&c->a->body, '}');
}

static void
handle_image(struct call *c)
{
	struct hr_fleet *f = c->api->fleet;
	struct hr_err err = {0};
	struct hr_buf name;
	char *text = NULL;

	if (*query_value(&name, c->query, "image") == '\0') {
		(void)hr_fleet_say(c->a, 400, "which image? \"?image=NAME\"");
	} else if (f->engine->image(f->engine_self, hr_buf_str(&name), &text, &err) != 0) {
		hr_log(HR_LOG_WARNING, "image: %.600s", err.msg);
		(void)hr_fleet_say(c->a, 503, "the engine cannot be asked now");
		c->a->retry_after_s = BUSY_S;
	} else {
		c->a->status = 200;
		hr_buf_adds(&c->a->body, text);
	}
	free(text);
	hr_buf_done(&name);
}

static void
handle_build(struct call *c)
{
	(void)hr_fleet_say(c->a, 501,
	    "this service builds no images; name one that is there, or in a registry, in /start");
}

static void
handle_operator(struct call *c)
{
	hr_fleet_handle_operator(c->api, c->q, c->rest, c->a);
}

/* Rows with a "/" at their end take everything below it. */
static const struct {
	const char *method, *path;
	int scope; /* 0: without a key */
	void (*handle)(struct call *c);
} rows[] = {
    {"POST", "/start", HR_SCOPE_USE, handle_start},
    {"POST", "/stop", HR_SCOPE_USE, handle_stop},
    {"POST", "/pause", HR_SCOPE_USE, handle_pause},
    {"POST", "/resume", HR_SCOPE_USE, handle_resume},
    {"GET", "/sessions/", HR_SCOPE_READ, handle_session},
    {"GET", "/runtime/", HR_SCOPE_READ, handle_runtime},
    {"GET", "/list", HR_SCOPE_READ, handle_list},
    {"GET", "/registry_prefix", HR_SCOPE_READ, handle_prefix},
    {"GET", "/image_exists", HR_SCOPE_READ, handle_image},
    {"POST", "/build", HR_SCOPE_USE, handle_build},
    {"GET", "/build_status", HR_SCOPE_READ, handle_build},
    {"GET", "/handrail/v1/", HR_SCOPE_ADMIN, handle_operator},
    {"POST", "/handrail/v1/", HR_SCOPE_ADMIN, handle_operator},
};
#define ROWS (sizeof(rows) / sizeof(*rows))

static bool
row_takes(size_t i, const char *path, size_t len)
{
	size_t n = strlen(rows[i].path);

	return rows[i].path[n - 1] == '/' ? len > n && strncmp(path, rows[i].path, n) == 0
					  : len == n && strncmp(path, rows[i].path, n) == 0;
}

/* 0: *ret; -1: answered. */
static int
who(const struct hr_fleet_api *api, const struct hr_fleet_request *q, int scope,
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
handle_row(struct call *c, size_t i, const char *path)
{
	struct hr_json_error why;
	size_t n = strlen(rows[i].path);

	if (who(c->api, c->q, rows[i].scope, &c->key, c->a) != 0)
		return;
	if (strcmp(c->q->method, "POST") == 0 && rows[i].handle != handle_build &&
	    c->q->body_len > 0 && hr_json_decode(c->q->body, c->q->body_len, &c->body, &why) != 0) {
		(void)hr_fleet_say(c->a, 400, "the body is no JSON");
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

static void
handle(const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct hr_fleet_answer *a)
{
	static const char *const open[] = {"/health", "/alive", "/ready", "/metrics"};
	struct call c = {.api = api, .q = q, .a = a};
	size_t len = strcspn(q->uri, "?");
	bool other = false;
	char path[1024];

	if (len >= sizeof(path)) {
		(void)hr_fleet_say(a, 404, "Not Found");
		return;
	}
	memcpy(path, q->uri, len);
	path[len] = '\0';
	c.query = q->uri[len] == '?' ? q->uri + len + 1 : "";
	for (size_t i = 0; i < sizeof(open) / sizeof(*open); i++)
		if (strcmp(path, open[i]) == 0) {
			handle_open(api, path, a);
			return;
		}
	for (size_t i = 0; i < ROWS && a->status == 0; i++) {
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
	if (q->route != HR_FLEET_ROUTE_NONE)
		hr_fleet_handle_route(api, q, ret);
	else
		handle(api, q, ret);
	if (hr_buf_check(&ret->body, NULL) != 0)
		(void)hr_fleet_say(ret, 503, "out of memory");
}

void
hr_fleet_answer_done(struct hr_fleet_answer *a)
{
	hr_buf_done(&a->body);
	hr_buf_done(&a->at);
}
