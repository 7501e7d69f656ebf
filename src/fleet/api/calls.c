/* Implements the calls of the Runtime API (doc/fleet.md, "Calls"), one function each. */
#include "config.h"

#include "fleet/api/api_int.h"
#include "fleet/fleet_int.h"
#include "fleet/network.h"
#include "fleet/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "base/text/percent.h"
#include "proto/json.h"

#define EVENTS_SHOWN 50
#define BUILDS_S 30 /* value of Retry-After for a full queue */

/* Decodes a C string; a value with a null character names nothing, and becomes "\0" spelled out. */
static void
decode(struct hr_buf *b, const char *text, size_t len, bool plus)
{
	hr_buf_reset(b);
	hr_percent_decode(b, text, len, plus);
	if (b->len > 0 && memchr(b->p, '\0', b->len) != NULL) {
		hr_buf_reset(b);
		hr_buf_adds(b, "\\0");
	}
}

bool
hr_fleet_query_next(struct hr_buf *b, const char **query, const char *name)
{
	size_t n = strlen(name), len;
	const char *at;

	while (*(at = *query) != '\0') {
		len = strcspn(at, "&");
		*query = at + len + (at[len] != '\0');
		if (len > n && strncmp(at, name, n) == 0 && at[n] == '=') {
			decode(b, at + n + 1, len - n - 1, true);
			return true;
		}
	}
	return false;
}

const char *
hr_fleet_query(struct hr_buf *b, const char *query, const char *name)
{
	while (hr_fleet_query_next(b, &query, name))
		;
	return hr_buf_str(b);
}

bool
hr_fleet_query_says(const struct hr_fleet_call *c, const char *name, const char *value)
{
	HR_BUF(b, HR_FLEET_QUERY_MAX);

	return strcmp(hr_fleet_query(&b, c->query, name), value) == 0;
}

long
hr_fleet_query_limit(const struct hr_fleet_call *c)
{
	HR_BUF(b, HR_FLEET_QUERY_MAX);
	const char *most = hr_fleet_query(&b, c->query, "limit");
	char *end;
	long n;

	if (*most == '\0')
		return HR_FLEET_PAGE_MAX;
	n = strtol(most, &end, 10);
	if (*end != '\0' || n <= 0) {
		(void)hr_fleet_say(c->a, 400, "limit is a number above 0");
		return 0;
	}
	return n < HR_FLEET_PAGE_MAX ? n : HR_FLEET_PAGE_MAX;
}

static void
answer_object(const struct hr_fleet_api *api, const struct hr_fleet_request *q,
    const struct hr_fleet_row *row, struct hr_fleet_answer *a)
{
	a->status = 200;
	hr_fleet_put_object(&a->body, api, q, row);
	hr_buf_addc(&a->body, '}');
}

struct events {
	struct hr_buf *b;
	bool any;
	struct hr_buf logs; /* the newest lines */
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
	if (e->any)
		hr_buf_addc(e->b, ',');
	hr_fleet_put_event(e->b, seq, at, id, what, detail);
	e->any = true;
}

/* Returns true if the key may use the image: those that were built for one key are closed to all
 * others. */
static bool
may_use(const struct hr_fleet_call *c, const char *image)
{
	return c->api->builds == NULL || image == NULL ||
	       hr_fleet_build_allows(c->api->registry_prefix, c->q->api_key, image);
}

void
hr_fleet_call_start(struct hr_fleet_call *c)
{
	const char *wrong = hr_fleet_request_wrong(c->body);
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	enum hr_fleet_result r;
	struct hr_err err = {0};
	HR_BUF(text, 2 * HR_FLEET_BODY_MAX);
	char shape[HR_FLEET_SHAPE];
	char id[HR_FLEET_ID];

	if (wrong == NULL && hr_json_at(c->body, "e2b") != NULL)
		wrong = "e2b: only the E2B API makes such sandboxes";
	if (wrong != NULL) {
		(void)hr_fleet_say(c->a, 400, wrong);
		return;
	}
	if (!may_use(c, hr_json_text_at(c->body, "image"))) {
		(void)hr_fleet_say(c->a, 400, "the image belongs to another key");
		return;
	}
	if (!hr_fleet_call_from(c))
		return;
	r = hr_fleet_network_check(c->api->fleet, c->key.id, c->body, &err);
	if (r != HR_FLEET_OK) {
		hr_fleet_refuse(c->a, r, &row, &err);
		return;
	}
	if (hr_fleet_request_shape(c->body, c->api->fleet->set.image, shape, &err) != 0 ||
	    hr_json_put(&text, c->body) != 0 || hr_buf_check(&text, NULL) != 0) {
		(void)hr_fleet_say(c->a, 400, "the body cannot be written as JSON");
		return;
	}
	r = hr_fleet_start(c->api->fleet, &c->key, hr_json_text_at(c->body, "session_id"),
	    hr_buf_str(&text), hr_fleet_request_factor(c->body), shape, NULL, &row, &err);
	if (r == HR_FLEET_OK && hr_fleet_query_says(c, "wait", "ready")) {
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
}

static void
change(struct hr_fleet_call *c, enum hr_fleet_change what)
{
	const char *id = hr_json_text_at(c->body, "runtime_id");
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	enum hr_fleet_result r;
	struct hr_err err = {0};

	if (id == NULL) {
		(void)hr_fleet_say(c->a, 400, "the body must be {\"runtime_id\": TEXT}");
		return;
	}
	r = hr_fleet_change(c->api->fleet, c->key.id, id, what, &row, &err);
	if (r == HR_FLEET_OK)
		answer_object(c->api, c->q, &row, c->a);
	else
		hr_fleet_refuse(c->a, r, &row, &err);
}

void
hr_fleet_call_stop(struct hr_fleet_call *c)
{
	change(c, HR_FLEET_STOP);
}

void
hr_fleet_call_pause(struct hr_fleet_call *c)
{
	change(c, HR_FLEET_PAUSE);
}

void
hr_fleet_call_resume(struct hr_fleet_call *c)
{
	change(c, c->api->new_keys ? HR_FLEET_RESUME_NEW_KEY : HR_FLEET_RESUME);
}

bool
hr_fleet_call_enter(struct hr_fleet_call *c, struct hr_fleet_place *p)
{
	struct hr_fleet *f = c->api->fleet;
	bool may;

	(void)pthread_mutex_lock(&f->lock);
	may = hr_fleet_place_take(f, p, c->key.id);
	(void)pthread_mutex_unlock(&f->lock);
	return may;
}

void
hr_fleet_call_leave(struct hr_fleet *f, struct hr_fleet_place *p)
{
	(void)pthread_mutex_lock(&f->lock);
	hr_fleet_place_give(f, p);
	(void)pthread_mutex_unlock(&f->lock);
}

/* Fetches the output of a present sandbox, only on request: the engine takes a while. */
static void
ask_logs(struct hr_fleet_call *c, const struct hr_fleet_row *row, struct hr_buf *logs)
{
	struct hr_fleet *f = c->api->fleet;
	struct hr_fleet_place place;
	struct hr_err err = {0};
	HR_FREE char *text = NULL;

	if (f->engine->logs == NULL || !hr_fleet_call_enter(c, &place))
		return;
	if (f->engine->logs(f->engine_self, row->id, &text, &err) == 0) {
		hr_buf_reset(logs);
		hr_buf_adds(logs, text);
	} else {
		hr_log(HR_LOG_INFO, "sandbox %s: its log: %.400s", row->id, err.msg);
	}
	hr_fleet_call_leave(f, &place);
}

/* Answers one sandbox with all details, found by its id or its session's. */
static void
look(struct hr_fleet_call *c, bool by_session)
{
	struct hr_fleet *f = c->api->fleet;
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	struct hr_buf *b = &c->a->body;
	struct events e = {.b = b};
	struct hr_err err = {0};
	HR_BUF(name, HR_FLEET_QUERY_MAX);
	int found;

	hr_buf_init(&e.logs, 4 * HR_FLEET_LOGS);
	decode(&name, c->rest, strlen(c->rest), false);
	(void)pthread_mutex_lock(&f->lock);
	found = by_session ? f->store->ops->find_session(
				 f->store, c->key.id, hr_buf_str(&name), true, &row, &err)
			   : f->store->ops->find(f->store, hr_buf_str(&name), &row, &err);
	if (found == 1 && row.key != c->key.id)
		found = 0;
	if (found == 1) {
		c->a->status = 200;
		hr_fleet_put_object(b, c->api, c->q, &row);
		hr_buf_adds(b, ",\"container_statuses\":[],\"events\":[");
		if (f->store->ops->events(f->store, 0, row.id, HR_FLEET_EVENTS_NOW, EVENTS_SHOWN,
			put_event, &e, &err) != 0)
			found = -1;
	}
	(void)pthread_mutex_unlock(&f->lock);
	if (found == 1) {
		if (hr_fleet_query_says(c, "logs", "true") && hr_fleet_holds_room(row.state))
			ask_logs(c, &row, &e.logs);
		/* a container that never ran has only the engine's error */
		if (row.state == HR_FLEET_DIED && e.logs.len == 0)
			hr_buf_adds(&e.logs, row.reason);
		hr_buf_adds(b, "],\"pod_logs\":");
		(void)hr_json_put_str(b, hr_buf_str(&e.logs), e.logs.len, HR_JSON_REPLACE);
		hr_buf_addc(b, '}');
	}
	if (found != 1)
		hr_fleet_refuse(c->a, found < 0 ? HR_FLEET_BROKEN : HR_FLEET_NOT_FOUND, &row, &err);
	hr_buf_done(&e.logs);
}

void
hr_fleet_call_session(struct hr_fleet_call *c)
{
	look(c, true);
}

void
hr_fleet_call_runtime(struct hr_fleet_call *c)
{
	look(c, false);
}

/* Answers the use of a running sandbox: one of the key's own, or any to an operator. */
void
hr_fleet_call_usage(struct hr_fleet_call *c)
{
	struct hr_fleet *f = c->api->fleet;
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	enum hr_fleet_result r;
	struct hr_fleet_place place;
	struct hr_err err = {0};
	HR_BUF(id, HR_FLEET_QUERY_MAX);
	HR_BUF(said, 1024);
	int reported;

	r = hr_fleet_look(f, hr_fleet_query(&id, c->query, "runtime_id"), &row, &err);
	/* nothing was found yet if there is no id */
	if (row.id[0] != '\0' && row.key != c->key.id && (c->key.scopes & HR_SCOPE_ADMIN) == 0)
		r = HR_FLEET_NOT_FOUND;
	if (r != HR_FLEET_OK) {
		hr_fleet_refuse(c->a, r, &row, &err);
	} else if (!hr_fleet_call_enter(c, &place)) {
		hr_fleet_refuse_crowd(c->a);
	} else {
		reported = hr_fleet_ask_usage(&row, &said);
		hr_fleet_call_leave(f, &place);
		if (reported != 0) {
			(void)hr_fleet_say(c->a, 501, "the sandbox does not report its use");
		} else {
			c->a->status = 200;
			hr_buf_adds(&c->a->body, hr_buf_str(&said));
		}
	}
}

void
hr_fleet_call_prefix(struct hr_fleet_call *c)
{
	const char *prefix = c->api->registry_prefix;
	char own[HR_FLEET_PREFIX];

	if (c->api->builds != NULL) {
		hr_fleet_build_prefix(prefix, c->q->api_key, own);
		prefix = own;
	}
	c->a->status = 200;
	hr_buf_adds(&c->a->body, "{\"registry_prefix\":");
	(void)hr_json_put_str(&c->a->body, prefix, strlen(prefix), HR_JSON_REPLACE);
	hr_buf_addc(&c->a->body, '}');
}

void
hr_fleet_call_image(struct hr_fleet_call *c)
{
	struct hr_fleet *f = c->api->fleet;
	struct hr_err err = {0};
	HR_BUF(name, HR_FLEET_QUERY_MAX);
	HR_FREE char *text = NULL;
	struct hr_fleet_place place;
	int r;

	if (*hr_fleet_query(&name, c->query, "image") == '\0') {
		(void)hr_fleet_say(c->a, 400, "which image? \"?image=NAME\"");
	} else if (!may_use(c, hr_buf_str(&name))) {
		c->a->status = 200;
		hr_buf_adds(&c->a->body, "{\"exists\":false}");
	} else if (!hr_fleet_call_enter(c, &place)) {
		(void)hr_fleet_say(c->a, 503, "many wait for the engine now");
		c->a->retry_after_s = HR_FLEET_BUSY_S;
	} else {
		r = f->engine->image(f->engine_self, hr_buf_str(&name), &text, &err);
		hr_fleet_call_leave(f, &place);
		if (r == 0) {
			c->a->status = 200;
			hr_buf_adds(&c->a->body, text);
		} else {
			hr_log(HR_LOG_WARNING, "image: %.600s", err.msg);
			(void)hr_fleet_say(c->a, 503, "the engine does not answer now; try again");
			c->a->retry_after_s = HR_FLEET_BUSY_S;
		}
	}
}

static void
no_builds(struct hr_fleet_call *c)
{
	(void)hr_fleet_say(c->a, 501,
	    "this service builds no images; name an existing one, here or in a registry, in "
	    "/start");
}

/* Checks the key again: an upload takes minutes, in which the key may have been revoked. */
static int
still_allowed(void *arg, struct hr_err *err)
{
	const struct hr_fleet_call *c = arg;
	struct hr_store *s = c->api->fleet->store;
	struct hr_fleet_key key;
	int found;

	(void)pthread_mutex_lock(&c->api->fleet->lock);
	found = s->ops->key_find(s, c->q->api_key, &key, err);
	(void)pthread_mutex_unlock(&c->api->fleet->lock);
	if (found == 0)
		(void)hr_err_set(err, HR_E_PERMISSION, HR_FLEET_KEY_GONE);
	return found == 1 ? 0 : -1;
}

void
hr_fleet_call_build(struct hr_fleet_call *c)
{
	struct hr_fleet_build_form form = {
	    .key = c->key.id,
	    .type = c->q->content_type,
	    .body = c->q->read_body,
	    .body_arg = c->q->read_arg,
	    .allowed = still_allowed,
	    .arg = c,
	};
	char own[HR_FLEET_PREFIX], id[HR_FLEET_BUILD_ID];
	struct hr_err err = {0};

	if (c->api->builds == NULL || c->q->read_body == NULL) {
		no_builds(c);
		return;
	}
	hr_fleet_build_prefix(c->api->registry_prefix, c->q->api_key, own);
	form.below = own;
	if (hr_fleet_build(c->api->builds, &form, id, &err) == 0) {
		c->a->status = 200;
		hr_buf_addf(&c->a->body, "{\"build_id\":\"%s\"}", id);
	} else if (err.code == HR_E_INVAL || err.code == HR_E_PROTO) {
		(void)hr_fleet_say(c->a, 400, err.msg);
	} else if (err.code == HR_E_PERMISSION && err.sys == 0) {
		(void)hr_fleet_say(c->a, 401, err.msg);
	} else if (err.code == HR_E_TIMEOUT) {
		(void)hr_fleet_say(c->a, 408, err.msg);
	} else if (err.code == HR_E_TOOLARGE) {
		(void)hr_fleet_say(c->a, 413, err.msg);
	} else if (err.code == HR_E_BUSY) {
		(void)hr_fleet_say(c->a, 429, err.msg);
		c->a->retry_after_s = BUILDS_S;
	} else {
		hr_fleet_refuse(c->a, HR_FLEET_BROKEN, NULL, &err);
	}
}

void
hr_fleet_call_build_status(struct hr_fleet_call *c)
{
	struct hr_err err = {0};
	HR_BUF(id, HR_FLEET_QUERY_MAX);
	int found;

	if (c->api->builds == NULL) {
		no_builds(c);
		return;
	}
	c->a->status = 200;
	found = hr_fleet_build_tell(c->api->builds, c->key.id,
	    hr_fleet_query(&id, c->query, "build_id"), hr_fleet_query_says(c, "logs", "true"),
	    &c->a->body, &err);
	if (found == 0)
		(void)hr_fleet_say(c->a, 404, "this key has no build of this id");
	else if (found < 0)
		hr_fleet_refuse(c->a, HR_FLEET_BROKEN, NULL, &err);
}
