/* Implements the table, keys, notes, and this process's one watch. */
#include "config.h"

#include "fleet/kubernetes/store_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json_object.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "host/client/rest.h"
#include "host/common/proc.h"
#include "proto/json.h"

#define PATIENCE_MS 5000 /* ms; callers queue (far.c) */
#define AGAIN_MS 2000
#define AWAY_MS 2000
/* maximum seconds to wait for old objects to disappear, for the pod, and for its server */
#define MAKING_S 600
#define DATA_MAX (1u << 20) /* maximum bytes of a Secret */
#define TRIES 16            /* number of attempts when other changes come first */
#define ALL "labelSelector=handrail%2Ffleet"

/* ---- objects ---- */

int
hr_kube_store_fail(const struct hr_err *why, struct hr_err *err)
{
	return hr_err_set(err, HR_E_SYS, "the fleet's store: %.220s", why->msg);
}

int
hr_kube_store_away(const struct hr_kube_store *s, struct hr_err *err)
{
	return s->away_ms != 0 && hr_now_ms() - s->away_ms < AWAY_MS
		   ? hr_err_set(err, HR_E_UNAVAILABLE, "the API server %s does not answer",
			 s->kube.login.server)
		   : 0;
}

int
hr_kube_store_heard(struct hr_kube_store *s, int r)
{
	s->away_ms = r != 0 && s->kube.status.code == 0 ? hr_now_ms() : 0;
	return r;
}

int
hr_kube_store_call(struct hr_kube_store *s, enum hr_kube_verb verb, const char *path,
    const char *body, struct json_object **ret, struct hr_err *err)
{
	memset(&s->kube.status, 0, sizeof(s->kube.status));
	return hr_kube_store_away(s, err) == 0
		   ? hr_kube_store_heard(s, hr_kube_call(&s->kube, verb, path, body, ret, err))
		   : -1;
}

static void
path_of(const struct hr_kube_store *s, const char *name, char path[256])
{
	(void)snprintf(
	    path, 256, "/api/v1/namespaces/%s/secrets%s%s", s->ns, *name != '\0' ? "/" : "", name);
}

int
hr_kube_store_get(
    struct hr_kube_store *s, const char *name, struct json_object **ret, struct hr_err *err)
{
	struct hr_err why = {0};
	char path[256];

	path_of(s, name, path);
	if (hr_kube_store_call(s, HR_KUBE_GET, path, NULL, ret, &why) == 0)
		return 1;
	return s->kube.status.code == 404 ? 0 : hr_kube_store_fail(&why, err);
}

/* Checks the effect of a request that is sent again because its answer was lost: the second answer
 * describes the effect of the first. Returns 1 if the object has this content and owner already; 0
 * if not, or -1. */
static int
is_written(struct hr_kube_store *s, const char *name, const char *owner, const char *data,
    struct json_object **ret, struct hr_err *err)
{
	HR_PUT struct json_object *there = NULL;
	HR_PUT struct json_object *wanted = NULL;
	int r = hr_kube_store_get(s, name, ret, err);

	if (r != 1)
		return r;
	there = hr_object_data(*ret);
	return hr_json_decode(data, strlen(data), &wanted, NULL) == 0 &&
	       json_object_equal(there, wanted) &&
	       (owner == NULL || strcmp(hr_object_owner(*ret), owner) == 0);
}

int
hr_kube_store_put(struct hr_kube_store *s, const char *name, const char *kind, const char *owner,
    const char *version, const char *data, struct json_object **ret, struct hr_err *err)
{
	HR_PUT struct json_object *o = NULL;
	struct hr_err why = {0};
	HR_BUF(b, 2 * DATA_MAX);
	char path[256];
	int r;

	path_of(s, version != NULL ? name : "", path);
	hr_object_write(&b, s->ns, name, kind, owner, version, data);
	r = hr_buf_check(&b, err);
	if (r == 0 && hr_kube_store_call(s, version != NULL ? HR_KUBE_MERGE : HR_KUBE_CREATE, path,
			  hr_buf_str(&b), &o, &why) == 0)
		r = 1;
	else if (r == 0 && s->kube.status.code == 409)
		r = is_written(s, name, owner, data, &o, err);
	else if (r == 0 && (version == NULL || s->kube.status.code != 404))
		/* 404 without a version: there is no namespace */
		r = hr_kube_store_fail(&why, err);
	if (r == 1 && hr_cache_put(s->cache, o, NULL, err) < 0)
		r = -1;
	if (b.p != NULL)
		explicit_bzero(b.p, b.len);
	if (ret != NULL && r == 1)
		*ret = json_object_get(o);
	return r;
}

int
hr_kube_store_delete(
    struct hr_kube_store *s, const char *name, const char *version, struct hr_err *err)
{
	struct hr_err why = {0};
	char path[256], body[128];

	path_of(s, name, path);
	(void)snprintf(body, sizeof(body), "{\"preconditions\":{\"resourceVersion\":\"%s\"}}",
	    version != NULL ? version : "");
	if (hr_kube_store_call(
		s, HR_KUBE_DELETE, path, version != NULL ? body : "{}", NULL, &why) == 0 ||
	    s->kube.status.code == 404 || (version != NULL && s->kube.status.code == 409))
		return 0;
	return hr_kube_store_fail(&why, err);
}

static int
too_often(const char *name, struct hr_err *err)
{
	return hr_err_set(
	    err, HR_E_BUSY, "the fleet's store: other writers kept changing %s: try again", name);
}

/* ---- keys ---- */

static int
write_key(struct hr_kube_store *s, const struct hr_fleet_key *k,
    const unsigned char sum[HR_FLEET_KEY_SUM], const char *version, struct hr_err *err)
{
	char name[HR_OBJECT_NAME];
	HR_BUF(data, DATA_MAX);
	int r;

	hr_object_key_name(k->id, name);
	hr_object_key_data(&data, k, sum);
	r = hr_buf_check(&data, err);
	if (r == 0)
		r = hr_kube_store_put(s, name, "key", s->me, version, hr_buf_str(&data), NULL, err);
	return r;
}

static int
key_make(struct hr_store *base, struct hr_fleet_key *k, char text[64], struct hr_err *err)
{
	HR_CLEAN(hr_kube_far_end) struct hr_kube_store *s = hr_kube_far_begin(base);
	unsigned char sum[HR_FLEET_KEY_SUM];
	uint32_t number;
	int r = 0, i;

	if (hr_fleet_key_text(text, err) != 0)
		return -1;
	hr_fleet_key_sum(text, sum);
	/* there is no counter: numbers are random, and a taken one is another key's */
	for (i = 0; r == 0 && i < TRIES; i++) {
		if (hr_random(&number, sizeof(number), err) < 0)
			return -1;
		k->id = (int64_t)number + 1;
		r = write_key(s, k, sum, NULL, err);
	}
	return r < 0 ? -1 : r > 0 ? 0 : too_often("keys", err);
}

static int
key_find(struct hr_store *base, const char *text, struct hr_fleet_key *ret, struct hr_err *err)
{
	unsigned char sum[HR_FLEET_KEY_SUM];

	(void)err;
	hr_fleet_key_sum(text, sum);
	return hr_cache_key(hr_kube_store_of(base)->cache, sum, ret);
}

static int
key_revoke(struct hr_store *base, int64_t id, bool *ret_found, struct hr_err *err)
{
	HR_CLEAN(hr_kube_far_end) struct hr_kube_store *s = hr_kube_far_begin(base);
	unsigned char sum[HR_FLEET_KEY_SUM];
	char name[HR_OBJECT_NAME];
	struct hr_fleet_key k;
	int r = 0, found = 1, i;

	hr_object_key_name(id, name);
	for (i = 0; r == 0 && found == 1 && i < TRIES; i++) {
		HR_PUT struct json_object *o = NULL;

		found = hr_kube_store_get(s, name, &o, err);
		if (found == 1 && hr_cache_put(s->cache, o, NULL, err) < 0)
			found = -1;
		if (found == 1 && hr_cache_key_of(s->cache, id, &k, sum) == 1) {
			k.revoked = true;
			r = write_key(s, &k, sum, hr_object_version(o), err);
		} else if (found == 1) {
			found = 0; /* another object has its name */
		}
	}
	*ret_found = found == 1;
	if (r == 0 && found == 1)
		return too_often(name, err);
	return r < 0 || found < 0 ? -1 : 0;
}

static int
keys(struct hr_store *base, hr_key_fn *fn, void *arg, struct hr_err *err)
{
	(void)err;
	hr_cache_keys(hr_kube_store_of(base)->cache, fn, arg);
	return 0;
}

/* ---- rows, as this process knows them ---- */

struct each {
	int64_t key;
	bool live;
	hr_row_fn *fn;
	void *arg;
};

static int
on_each(void *arg, const struct hr_fleet_row *r)
{
	const struct each *e = arg;

	if ((e->key == 0 || r->key == e->key) && (!e->live || hr_fleet_holds_room(r->state)))
		e->fn(e->arg, r);
	return 0;
}

static int
each(struct hr_store *base, int64_t key, bool live, hr_row_fn *fn, void *arg, struct hr_err *err)
{
	struct each e = {key, live, fn, arg};

	return hr_cache_each(hr_kube_store_of(base)->cache, on_each, &e, err);
}

struct least {
	enum hr_fleet_state state;
	char id[HR_FLEET_ID];
	int64_t active;
};

static int
on_least(void *arg, const struct hr_fleet_row *r)
{
	struct least *l = arg;

	if (r->state == l->state && (l->id[0] == '\0' || r->active < l->active)) {
		memcpy(l->id, r->id, sizeof(l->id));
		l->active = r->active;
	}
	return 0;
}

static int
least_active(struct hr_store *base, enum hr_fleet_state state, char ret_id[HR_FLEET_ID],
    int64_t *ret_active, struct hr_err *err)
{
	struct least l = {.state = state};

	if (hr_cache_each(hr_kube_store_of(base)->cache, on_least, &l, err) != 0)
		return -1;
	if (l.id[0] == '\0')
		return 0;
	memcpy(ret_id, l.id, HR_FLEET_ID);
	*ret_active = l.active;
	return 1;
}

struct pooled {
	const char *shape;
	int64_t *n;
	char *warm;
};

static int
on_pooled(void *arg, const struct hr_fleet_row *r)
{
	const struct pooled *p = arg;

	if (r->key != 0 || strcmp(r->shape, p->shape) != 0)
		return 0;
	p->n[0] += r->state == HR_FLEET_WARMING;
	p->n[1] += r->state == HR_FLEET_WARM;
	if (r->state == HR_FLEET_WARM && *p->warm == '\0')
		memcpy(p->warm, r->id, HR_FLEET_ID);
	return 0;
}

static int
pooled(struct hr_store *base, const char *shape, int64_t ret[2], char ret_warm[HR_FLEET_ID],
    struct hr_err *err)
{
	struct pooled p = {shape, ret, ret_warm};

	ret[0] = ret[1] = 0;
	*ret_warm = '\0';
	return hr_cache_each(hr_kube_store_of(base)->cache, on_pooled, &p, err);
}

/* ---- notes ---- */

static int
note_get(struct hr_store *base, const char *name, char **ret_value, struct hr_err *err)
{
	HR_CLEAN(hr_kube_far_end) struct hr_kube_store *s = hr_kube_far_begin(base);
	HR_PUT struct json_object *o = NULL;
	HR_PUT struct json_object *data = NULL;
	char object[HR_OBJECT_NAME];
	int r;

	(void)snprintf(object, sizeof(object), "handrail-note-%.40s", name);
	*ret_value = NULL;
	r = hr_kube_store_get(s, object, &o, err);
	data = r == 1 ? hr_object_data(o) : NULL;
	if (data != NULL && (*ret_value = strdup(hr_json_text_or(data, "value", ""))) == NULL)
		r = hr_err_nomem(err);
	return r < 0 ? -1 : 0;
}

static int
note_set(struct hr_store *base, const char *name, const char *value, struct hr_err *err)
{
	HR_CLEAN(hr_kube_far_end) struct hr_kube_store *s = hr_kube_far_begin(base);
	char object[HR_OBJECT_NAME];
	HR_BUF(data, DATA_MAX);
	int r = 0, found, i;

	(void)snprintf(object, sizeof(object), "handrail-note-%.40s", name);
	hr_buf_adds(&data, "{\"value\":");
	(void)hr_json_put_str(&data, value, strlen(value), HR_JSON_REPLACE);
	hr_buf_addc(&data, '}');
	for (i = 0; r == 0 && i < TRIES; i++) {
		HR_PUT struct json_object *o = NULL;

		found = hr_kube_store_get(s, object, &o, err);
		r = found < 0 || hr_buf_check(&data, err) != 0
			? -1
			: hr_kube_store_put(s, object, "note", s->me,
			      found == 1 ? hr_object_version(o) : NULL, hr_buf_str(&data), NULL,
			      err);
	}
	return r < 0 ? -1 : r > 0 ? 0 : too_often(object, err);
}

/* ---- the watch ---- */

static int
on_event(void *arg, enum hr_kube_event event, struct json_object *o)
{
	struct hr_kube_store *s = arg;
	unsigned char sum[HR_FLEET_KEY_SUM];
	char id[HR_FLEET_ID] = "";
	struct hr_fleet_key key;
	struct hr_err err = {0};
	HR_PUT struct json_object *data = NULL;

	switch (event) {
	case HR_KUBE_LIST: hr_cache_list(s->cache); break;
	case HR_KUBE_LISTED: hr_cache_listed(s->cache, s->fn, s->arg); break;
	case HR_KUBE_DELETED:
		data = hr_object_data(o);
		if (strcmp(hr_object_kind(o), "key") == 0 &&
		    hr_object_read_key(data, &key, sum) == 1)
			hr_cache_drop_key(s->cache, key.id);
		if (strcmp(hr_object_kind(o), "row") != 0)
			break;
		(void)snprintf(id, sizeof(id), "%s", hr_json_text_or(data, "id", ""));
		hr_cache_drop(s->cache, id);
		if (s->fn != NULL)
			s->fn(s->arg, id);
		break;
	default:
		switch (hr_cache_put(s->cache, o, id, &err)) {
		case 1:
			if (s->fn != NULL)
				s->fn(s->arg, id);
			break;
		case 0: break;
		default: hr_log(HR_LOG_ERROR, "the fleet's store: %s", err.msg); break;
		}
		break;
	}
	return 0;
}

void
hr_kube_store_follow(struct hr_kube_store *s, struct hr_kube *k, const char *kind,
    const char *selector, const char *what, hr_kube_event_fn *fn)
{
	struct hr_err why = {0};
	char path[256];

	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/%s", s->ns, kind);
	for (;;) {
		(void)hr_kube_watch(k, path, selector, fn, s, &why);
		hr_log(HR_LOG_ERROR, "the fleet's %s cannot be watched: %.600s", what, why.msg);
		(void)hr_rest_wait(-1, AGAIN_MS);
	}
}

static void *
watch_thread(void *arg)
{
	struct hr_kube_store *s = arg;

	hr_kube_store_follow(s, &s->watch_kube, "secrets", ALL, "store", on_event);
}

static int
watch(struct hr_store *base, void (*fn)(void *arg, const char *id), void *arg, struct hr_err *err)
{
	struct hr_kube_store *s = hr_kube_store_of(base);

	s->fn = fn;
	s->arg = arg;
	if (hr_kube_store_watch_events(s, err) != 0 || hr_kube_store_write_uses(s, err) != 0)
		return -1;
	return hr_thread_detached(watch_thread, s, err);
}

/* ---- the table ---- */

/* Frees the store. Must not be called while a watch runs: its thread runs until the process
 * ends. */
static void
close_it(struct hr_store *base)
{
	struct hr_kube_store *s = hr_kube_store_of(base);

	if (s->fn != NULL)
		return;
	hr_kube_done(&s->kube);
	hr_kube_done(&s->watch_kube);
	hr_kube_done(&s->events.kube);
	hr_kube_events_done(&s->events);
	hr_kube_uses_done(&s->uses);
	if (s->writer != NULL)
		hr_kube_done(&s->writer->kube);
	free(s->writer);
	hr_cache_free(s->cache);
	(void)pthread_mutex_destroy(&s->calls);
	free(s);
}

static const struct hr_store_ops ops = {
    .close = close_it,
    .key_make = key_make,
    .key_find = key_find,
    .key_revoke = key_revoke,
    .keys = keys,
    .reserve = hr_kube_store_reserve,
    .find = hr_kube_store_find,
    .known = hr_kube_store_known,
    .find_session = hr_kube_store_find_session,
    .each = each,
    .move = hr_kube_store_move,
    .active = hr_kube_store_active,
    .least_active = least_active,
    .pooled = pooled,
    .event = hr_kube_store_event,
    .events = hr_kube_store_events,
    .event_ends = hr_kube_store_event_ends,
    .note_get = note_get,
    .note_set = note_set,
    .share = hr_kube_far_share,
    .claim = hr_kube_store_claim,
    .watch = watch,
};

static int
on_item(void *arg, struct json_object *o)
{
	struct hr_kube_store *s = arg;

	return hr_cache_put(s->cache, o, NULL, NULL) < 0 ? -1 : 0;
}

struct hr_store *
hr_kube_store_open(const struct hr_fleet_options *o, struct hr_err *err)
{
	struct hr_kube_store *s = calloc(1, sizeof(*s));
	const char *ns = hr_config_text(o->config, "kubernetes.namespace");
	struct hr_err why = {0};
	char path[256];
	int r;

	if (s == NULL)
		return hr_err_null(err);
	s->base.ops = &ops;
	(void)pthread_mutex_init(&s->calls, NULL);
	hr_kube_events_init(&s->events);
	hr_kube_uses_init(&s->uses);
	s->making_ms = 1000 * (MAKING_S + hr_config_int(o->config, "kubernetes.schedule_timeout"));
	/* the name becomes part of paths; the API server reports other faults */
	ns = ns != NULL ? ns : "default";
	if (strlen(ns) >= sizeof(s->ns) ||
	    strspn(ns, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(ns)) {
		(void)hr_err_set(err, HR_E_INVAL, "\"%.80s\" is not a namespace", ns);
		close_it(&s->base);
		return NULL;
	}
	(void)snprintf(s->ns, sizeof(s->ns), "%s", ns);
	s->cache = hr_cache_new(err);
	s->writer = calloc(1, sizeof(*s->writer));
	r = s->cache != NULL && hr_random_hex(s->me, 32, err) >= 0 ? 0 : -1;
	if (r == 0 && s->writer == NULL)
		r = hr_err_nomem(err);
	if (r == 0 &&
	    (hr_kube_init(&s->kube, o->config, o->environ, PATIENCE_MS, &why) != 0 ||
		hr_kube_init(&s->writer->kube, o->config, o->environ, PATIENCE_MS, &why) != 0 ||
		hr_kube_init(&s->watch_kube, o->config, o->environ, 0, &why) != 0 ||
		hr_kube_init(&s->events.kube, o->config, o->environ, 0, &why) != 0))
		r = hr_kube_store_fail(&why, err);
	path_of(s, "", path);
	if (r == 0 && hr_kube_list(&s->kube, path, ALL, on_item, s, NULL, 0, &why) != 0)
		r = hr_kube_store_fail(&why, err);
	if (r != 0) {
		close_it(&s->base);
		return NULL;
	}
	return &s->base;
}
