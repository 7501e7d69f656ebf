/* Implements the operators' calls, below /handrail/v1/, and the metrics. */
#include "config.h"

#include "fleet/api/api_int.h"
#include "fleet/fleet_int.h"
#include "fleet/network.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/grow.h"
#include "base/hash.h"
#include "base/strv.h"
#include "proto/json.h"

/* The keys, which are listed before their limits are asked for. */
struct keys {
	struct hr_fleet_key *v;
	size_t n, room;
	bool nomem;
};

static void
add_key(void *arg, const struct hr_fleet_key *k)
{
	struct keys *keys = arg;

	if (hr_grow(&keys->v, keys->n, &keys->room, sizeof(*keys->v)) < 0)
		keys->nomem = true;
	else
		keys->v[keys->n++] = *k;
}

static void
put_key(struct hr_buf *b, const struct hr_fleet_key *k, const char *limit)
{
	hr_json_put_comma(b);
	hr_buf_addf(b, "{\"id\":%" PRId64, k->id);
	hr_json_put_named(b, "name", k->name);
	hr_buf_addf(b,
	    ",\"scopes\":[%s%s%s],\"sandboxes\":%" PRId64 ",\"factors\":%" PRId64
	    ",\"expires\":%" PRId64 ",\"revoked\":%s,\"network\":%s}",
	    (k->scopes & HR_SCOPE_READ) != 0 ? "\"read\"" : "",
	    (k->scopes & HR_SCOPE_USE) != 0 ? ",\"use\"" : "",
	    (k->scopes & HR_SCOPE_ADMIN) != 0 ? ",\"admin\"" : "", k->limits.sandboxes,
	    k->limits.factors, k->expires, k->revoked ? "true" : "false",
	    limit != NULL ? limit : "null");
}

static void
list_keys(struct hr_fleet *f, struct json_object *body, struct hr_fleet_answer *a)
{
	struct keys keys = {.n = 0};
	struct hr_err err = {0};
	int r = f->store->ops->keys(f->store, add_key, &keys, &err);
	size_t i;

	(void)body;
	a->status = 200;
	hr_buf_adds(&a->body, "{\"keys\":[");
	if (r == 0 && keys.nomem)
		r = hr_err_nomem(&err);
	for (i = 0; r == 0 && i < keys.n; i++) {
		HR_FREE char *limit = NULL;

		r = hr_fleet_network_limit_of(f, keys.v[i].id, &limit, &err);
		put_key(&a->body, &keys.v[i], limit);
	}
	free(keys.v);
	if (r != 0)
		hr_fleet_refuse(a, HR_FLEET_BROKEN, NULL, &err);
	else
		hr_buf_adds(&a->body, "]}");
}

/* Returns the scopes of a name: each includes the lower ones, so a key that may use may also
 * read. */
static int
scopes_of(const char *name)
{
	if (strcmp(name, "read") == 0)
		return HR_SCOPE_READ;
	if (strcmp(name, "use") == 0)
		return HR_SCOPE_READ | HR_SCOPE_USE;
	return strcmp(name, "admin") == 0 ? HR_SCOPE_READ | HR_SCOPE_USE | HR_SCOPE_ADMIN : 0;
}

/* Returns true if the member is missing or has that type: a limit of another type is not none. */
static bool
is_typed(struct json_object *body, const char *name, enum hr_py_type type)
{
	return hr_json_at(body, name) == NULL || hr_json_typed_at(body, name, type) != NULL;
}

static void
make_key(struct hr_fleet *f, struct json_object *body, struct hr_fleet_answer *a)
{
	struct hr_fleet_key k = {.scopes = scopes_of(hr_json_text_or(body, "scope", "use")),
	    .limits = {hr_json_int_at(body, "sandboxes"), hr_json_int_at(body, "factors")},
	    .expires = hr_json_int_at(body, "expires")};
	const char *name = hr_json_text_or(body, "name", "");
	struct json_object *limit = hr_json_at(body, "network");
	struct hr_err err = {0};
	char text[64];
	bool found;

	if (*name == '\0' || strlen(name) >= sizeof(k.name) || k.scopes == 0 ||
	    !is_typed(body, "scope", HR_PY_STR) || !is_typed(body, "sandboxes", HR_PY_INT) ||
	    !is_typed(body, "factors", HR_PY_INT) || !is_typed(body, "expires", HR_PY_INT) ||
	    k.limits.sandboxes < 0 || k.limits.factors < 0 || k.expires < 0) {
		(void)hr_fleet_say(a, 400,
		    "a key has a name of up to 63 bytes, a scope (read, use, admin), and numbers "
		    "of sandboxes, factors and expires that are not negative");
		return;
	}
	if (limit != NULL && hr_fleet_network_may_limit(f, limit, &err) != 0) {
		(void)hr_fleet_say(a, 400, err.msg);
		return;
	}
	(void)snprintf(k.name, sizeof(k.name), "%s", name);
	if (f->store->ops->key_make(f->store, &k, text, &err) != 0) {
		hr_fleet_refuse(a, HR_FLEET_BROKEN, NULL, &err);
		return;
	}
	/* until here no client has the key */
	if (limit != NULL && hr_fleet_network_limit(f, k.id, limit, &err) != 0) {
		(void)f->store->ops->key_revoke(f->store, k.id, &found, NULL);
		hr_fleet_refuse(a, HR_FLEET_BROKEN, NULL, &err);
		return;
	}
	a->status = 200;
	hr_buf_addf(&a->body, "{\"id\":%" PRId64 ",\"key\":\"%s\"}", k.id, text);
	explicit_bzero(text, sizeof(text));
}

/* Sets what the network of a key's sandboxes cannot exceed. */
static void
limit_key(struct hr_fleet *f, struct json_object *body, struct hr_fleet_answer *a)
{
	struct json_object *limit = hr_json_at(body, "network");
	int64_t id = hr_json_int_at(body, "id");
	struct keys keys = {.n = 0};
	struct hr_err err = {0};
	int r = f->store->ops->keys(f->store, add_key, &keys, &err);
	size_t i = 0;

	if (r == 0 && keys.nomem)
		r = hr_err_nomem(&err);
	while (i < keys.n && keys.v[i].id != id)
		i++;
	if (r == 0 && i == keys.n)
		(void)hr_fleet_say(a, 404, "no key has this id");
	else if (r == 0 && !json_object_object_get_ex(body, "network", NULL))
		(void)hr_fleet_say(
		    a, 400, "the body must be {\"id\": NUMBER, \"network\": OBJECT or null}");
	else if (r == 0)
		r = hr_fleet_network_limit(f, id, limit, &err);
	free(keys.v);
	if (r != 0 && err.code == HR_E_INVAL)
		(void)hr_fleet_say(a, 400, err.msg);
	else if (r != 0)
		hr_fleet_refuse(a, HR_FLEET_BROKEN, NULL, &err);
	if (a->status != 0)
		return;
	a->status = 200;
	hr_buf_addf(&a->body, "{\"id\":%" PRId64 ",\"network\":", id);
	hr_json_put_whole(&a->body, limit);
	hr_buf_addc(&a->body, '}');
}

/* The sandboxes of a key that ends. */
struct its {
	const struct hr_fleet *f;
	struct hr_strv ids;
	bool stop; /* includes those that died and keep files */
};

static void
add_its(void *arg, const struct hr_fleet_row *row)
{
	struct its *its = arg;

	if (hr_fleet_has_session(row->state) || (its->stop && hr_fleet_keeps_files(its->f, row)))
		hr_strv_add(&its->ids, row->id);
}

/* Changes each sandbox separately, so that the lock is free in between. *ret_all is set if all of
 * them are stopped or deleted. Returns 0, or -1 with *err set for one of them. */
static int
stop_those(
    struct hr_fleet *f, int64_t key, const struct hr_strv *ids, bool *ret_all, struct hr_err *err)
{
	enum hr_fleet_result one;
	size_t i;
	int r = 0;

	*ret_all = true;
	for (i = 0; i < ids->n; i++) {
		one = hr_fleet_stop_for(f, key, ids->v[i], "its key was revoked", err);
		if (one == HR_FLEET_BROKEN)
			r = -1;
		else if (one != HR_FLEET_OK && one != HR_FLEET_NOT_FOUND)
			*ret_all = false;
	}
	return r;
}

/* Revokes a key: its sandboxes keep running and obey their session keys, or are stopped now. Takes
 * the lock itself. */
static void
revoke_key(struct hr_fleet *f, struct json_object *body, struct hr_fleet_answer *a)
{
	int64_t id = hr_json_int_at(body, "id");
	struct its its = {.f = f, .stop = hr_json_true_at(body, "stop")};
	struct hr_err err = {0};
	bool found = false, all = false;
	int r;

	if (!is_typed(body, "stop", HR_PY_BOOL)) {
		(void)hr_fleet_say(a, 400, "stop must be true or false");
		return;
	}
	(void)pthread_mutex_lock(&f->lock);
	r = f->store->ops->key_revoke(f->store, id, &found, &err);
	if (r == 0 && found) {
		(void)pthread_cond_broadcast(&f->changed); /* ends the key's streams */
		r = f->store->ops->each(f->store, id, !its.stop, add_its, &its, &err);
	}
	(void)pthread_mutex_unlock(&f->lock);
	if (r == 0 && its.ids.failed)
		r = hr_err_nomem(&err);
	if (r == 0 && its.stop)
		r = stop_those(f, id, &its.ids, &all, &err);
	if (r != 0) {
		hr_fleet_refuse(a, HR_FLEET_BROKEN, NULL, &err);
	} else if (!found) {
		(void)hr_fleet_say(a, 404, "no key has this id");
	} else {
		a->status = 200;
		hr_buf_addf(&a->body, "{\"revoked\":true,\"sandboxes\":%zu,\"stopped\":%s}",
		    its.ids.n, all ? "true" : "false");
	}
	hr_strv_done(&its.ids);
}

static void
put_sandbox(void *arg, const struct hr_fleet_row *row)
{
	HR_PUT struct json_object *request = NULL;
	struct hr_buf *b = arg;
	const char *image = "";

	hr_json_put_comma(b);
	hr_buf_addf(b, "{\"runtime_id\":\"%s\",\"key\":%" PRId64, row->id, row->key);
	hr_json_put_named(b, "session_id", row->session);
	hr_buf_addf(b,
	    ",\"state\":\"%s\",\"resource_factor\":%" PRId64 ",\"created\":%" PRId64
	    ",\"active\":%" PRId64 ",\"resumed\":%" PRId64,
	    hr_fleet_state_name(row->state), row->factor, row->created, row->active, row->resumed);
	hr_json_put_named(b, "reason", row->reason);
	if (row->request != NULL &&
	    hr_json_decode(row->request, strlen(row->request), &request, NULL) == 0)
		image = hr_json_text_or(request, "image", "");
	hr_json_put_named(b, "image", image);
	hr_fleet_put_origin(b, row);
	hr_buf_addc(b, '}');
}

/* Changes any key's sandbox. Returns 0, or -1 if there is no such call. Takes the lock itself. */
static int
change_sandbox(struct hr_fleet_call *c)
{
	static const struct {
		const char *method, *path;
		enum hr_fleet_change what;
	} of[] = {
	    {"POST", "sandboxes/stop", HR_FLEET_STOP},
	    {"POST", "sandboxes/pause", HR_FLEET_PAUSE},
	    {"POST", "sandboxes/resume", HR_FLEET_RESUME},
	};
	const char *id = hr_json_text_at(c->body, "runtime_id");
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	enum hr_fleet_result r;
	struct hr_err err = {0};
	size_t i = 0;

	while (i < sizeof(of) / sizeof(*of) &&
	       (strcmp(of[i].path, c->rest) != 0 || strcmp(of[i].method, c->q->method) != 0))
		i++;
	if (i == sizeof(of) / sizeof(*of))
		return -1;
	if (id == NULL) {
		(void)hr_fleet_say(c->a, 400, "the body must be {\"runtime_id\": TEXT}");
		return 0;
	}
	r = hr_fleet_change(c->api->fleet, 0, id, of[i].what, &row, &err);
	if (r == HR_FLEET_OK) {
		c->a->status = 200;
		put_sandbox(&c->a->body, &row);
	} else {
		hr_fleet_refuse(c->a, r, &row, &err);
	}
	return 0;
}

static void
list_sandboxes(struct hr_fleet *f, struct json_object *body, struct hr_fleet_answer *a)
{
	struct hr_err err = {0};

	(void)body;
	a->status = 200;
	hr_buf_adds(&a->body, "{\"sandboxes\":[");
	if (f->store->ops->each(f->store, 0, true, put_sandbox, &a->body, &err) != 0)
		hr_fleet_refuse(a, HR_FLEET_BROKEN, NULL, &err);
	else
		hr_buf_addf(&a->body, "],\"drained\":%s}", f->drained ? "true" : "false");
}

static void
drain(struct hr_fleet *f, struct json_object *body, struct hr_fleet_answer *a)
{
	struct hr_err err = {0};

	if (hr_fleet_drain(
		f, hr_json_at(body, "off") == NULL || !hr_json_true_at(body, "off"), &err) != 0) {
		hr_fleet_refuse(a, HR_FLEET_BROKEN, NULL, &err);
		return;
	}
	a->status = 200;
	hr_buf_addf(&a->body, "{\"drained\":%s}", f->drained ? "true" : "false");
}

/* Writes the version of the pools, which changes with them. */
static void
pools_version(const struct hr_fleet *f, char ret[17])
{
	const struct hr_fleet_pool *p;
	uint64_t h = HR_HASH;

	for (p = f->pools; p != NULL; p = p->next) {
		if (p->size == 0)
			continue;
		h = hr_hash(h, p->name, strlen(p->name) + 1);
		h = hr_hash(h, &p->size, sizeof(p->size));
		h = hr_hash(h, p->request, strlen(p->request) + 1);
	}
	(void)snprintf(ret, 17, "%016" PRIx64, h);
}

/* Answers the pools, each with its progress. */
static void
list_pools(struct hr_fleet *f, struct json_object *body, struct hr_fleet_answer *a)
{
	struct hr_err err = {0};
	char warm[HR_FLEET_ID], version[17];
	int64_t n[2];
	const struct hr_fleet_pool *p;

	(void)body;
	a->status = 200;
	pools_version(f, version);
	hr_buf_addf(&a->body, "{\"version\":\"%s\",\"pools\":[", version);
	for (p = f->pools; p != NULL; p = p->next) {
		if (f->store->ops->pooled(f->store, p->shape, n, warm, &err) != 0) {
			hr_fleet_refuse(a, HR_FLEET_BROKEN, NULL, &err);
			return;
		}
		if (p->size == 0 && n[0] + n[1] == 0)
			continue; /* the pool was deleted meanwhile */
		hr_json_put_comma(&a->body);
		hr_buf_addc(&a->body, '{');
		hr_json_put_named(&a->body, "name", p->name);
		hr_buf_addf(&a->body,
		    ",\"size\":%" PRId64 ",\"warming\":%" PRId64 ",\"warm\":%" PRId64
		    ",\"failed\":%u,\"request\":%s}",
		    p->size, n[0], n[1], p->failed, p->request);
	}
	hr_buf_adds(&a->body, "]}");
}

static void
set_pools(struct hr_fleet *f, struct json_object *body, struct hr_fleet_answer *a)
{
	const char *seen = hr_json_text_at(body, "version");
	struct hr_err err = {0};
	char version[17];

	while (f->setting_pools)
		(void)pthread_cond_wait(&f->changed, &f->lock);
	f->setting_pools = true;
	pools_version(f, version);
	if (seen != NULL && strcmp(seen, version) != 0)
		(void)hr_fleet_say(
		    a, 409, "the pools have changed since you read them; read them and try again");
	else if (hr_fleet_set_pools(f, hr_json_at(body, "pools"), &err) == 0)
		list_pools(f, body, a);
	else if (err.code == HR_E_INVAL)
		(void)hr_fleet_say(a, 400, err.msg);
	else
		hr_fleet_refuse(a, HR_FLEET_BROKEN, NULL, &err);
	f->setting_pools = false;
	(void)pthread_cond_broadcast(&f->changed);
}

/* Answers the capacity now and in the last hour. */
static void
tell_capacity(struct hr_fleet *f, struct json_object *body, struct hr_fleet_answer *a)
{
	struct hr_err err = {0};

	(void)body;
	a->status = 200;
	hr_buf_addc(&a->body, '{');
	if (hr_fleet_put_history(f, &a->body, &err) != 0)
		hr_fleet_refuse(a, HR_FLEET_BROKEN, NULL, &err);
	else
		hr_buf_addc(&a->body, '}');
}

static void
tell_alerts(struct hr_fleet *f, struct json_object *body, struct hr_fleet_answer *a)
{
	(void)body;
	a->status = 200;
	hr_buf_addc(&a->body, '{');
	hr_fleet_put_alerts(f, &a->body);
	hr_buf_addc(&a->body, '}');
}

static const struct {
	const char *method, *path;
	void (*handle)(struct hr_fleet *f, struct json_object *body, struct hr_fleet_answer *a);
	bool locks; /* the call takes the lock itself, for parts of its work */
} rows[] = {
    {"GET", "keys", list_keys, false},
    {"POST", "keys", make_key, false},
    {"POST", "keys/network", limit_key, false},
    {"POST", "keys/revoke", revoke_key, true},
    {"GET", "sandboxes", list_sandboxes, false},
    {"POST", "drain", drain, false},
    {"GET", "pools", list_pools, false},
    {"POST", "pools", set_pools, false},
    {"GET", "capacity", tell_capacity, false},
    {"GET", "alerts", tell_alerts, false},
};

void
hr_fleet_call_operator(struct hr_fleet_call *c)
{
	struct hr_fleet *f = c->api->fleet;
	size_t i;

	if (change_sandbox(c) == 0)
		return;
	for (i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		if (strcmp(rows[i].method, c->q->method) != 0 || strcmp(rows[i].path, c->rest) != 0)
			continue;
		if (!rows[i].locks)
			(void)pthread_mutex_lock(&f->lock);
		rows[i].handle(f, c->body, c->a);
		if (!rows[i].locks)
			(void)pthread_mutex_unlock(&f->lock);
	}
	if (c->a->status == 0)
		(void)hr_fleet_say(c->a, 404, "Not Found");
}

static void
count_state(void *arg, const struct hr_fleet_row *row)
{
	((uint64_t *)arg)[row->state]++;
}

void
hr_fleet_handle_metrics(const struct hr_fleet_api *api, struct hr_fleet_answer *a)
{
	struct hr_fleet *f = api->fleet;
	uint64_t states[HR_FLEET_STATES] = {0};
	struct hr_err err = {0};
	const struct hr_fleet_counts *c = &f->counts;
	size_t i;
	/* help is printed only where the name differs from the previous row's */
	const struct {
		const char *name, *labels;
		const uint64_t *n;
		const char *help;
	} totals[] = {{"creations_total", "{outcome=\"ok\",path=\"cold\"}", &c->cold,
			  "Starts by result, made (cold) or taken from a pool (warm)."},
	    {"creations_total", "{outcome=\"ok\",path=\"warm\"}", &c->warm, NULL},
	    {"creations_total", "{outcome=\"failed\",path=\"cold\"}", &c->make_failed, NULL},
	    {"creations_total", "{outcome=\"failed\",path=\"warm\"}", &c->warm_failed, NULL},
	    {"pool_creations_total", "", &c->pooled, "Sandboxes that were made for a pool."},
	    {"evictions_total", "", &c->evicted, "Sandboxes of pools that gave way to a start."},
	    {"resumes_total", "", &c->resumed, "Resumes."},
	    {"pauses_total", "", &c->paused, "Pauses."},
	    {"idle_pauses_total", "", &c->idle_paused, "Pauses for idleness."},
	    {"stops_total", "", &c->stopped, "Stops."},
	    {"deaths_total", "", &c->died,
		"Sandboxes that ended by themselves or could not be made."},
	    {"routes_total", "", &c->routes, "Requests for sandboxes."},
	    {"refusals_total", "{why=\"quota\"}", &c->refused_quota,
		"Starts that were refused: the key's quota, or no room here."},
	    {"refusals_total", "{why=\"room\"}", &c->refused_room, NULL}};
	int r;

	a->status = 200;
	a->type = "text/plain; version=0.0.4";
	(void)pthread_mutex_lock(&f->lock);
	r = f->store->ops->each(f->store, 0, true, count_state, states, &err);
	for (i = 0; i < sizeof(totals) / sizeof(*totals); i++) {
		if (totals[i].help != NULL)
			hr_fleet_put_head(&a->body, totals[i].name, "counter", totals[i].help);
		hr_buf_addf(&a->body, "handrail_fleet_%s%s %" PRIu64 "\n", totals[i].name,
		    totals[i].labels, *totals[i].n);
	}
	hr_fleet_put_head(&a->body, "waiting", "gauge", "Requests that wait for a sandbox.");
	hr_buf_addf(&a->body, "handrail_fleet_waiting %u\n", f->waiting);
	(void)pthread_mutex_unlock(&f->lock);
	hr_fleet_put_times(f, &a->body);
	hr_fleet_put_head(&a->body, "sandboxes", "gauge", "Sandboxes that hold room, by state.");
	for (i = 0; i < HR_FLEET_STATES; i++)
		if (hr_fleet_holds_room((enum hr_fleet_state)i))
			hr_buf_addf(&a->body,
			    "handrail_fleet_sandboxes{state=\"%s\"} %" PRIu64 "\n",
			    hr_fleet_state_name((enum hr_fleet_state)i), states[i]);
	if (r != 0)
		hr_fleet_refuse(a, HR_FLEET_BROKEN, NULL, &err);
}
