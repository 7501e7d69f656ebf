/* Keeps the fleet's events, as Events of the API server, which keeps them for an hour by default;
 * their versions order them. One watch delivers all of them to this process, which keeps the
 * latest, so that readers do not wait for the server. The list is sorted and, up to `seen`,
 * complete. After that come events that this process wrote and the watch has not delivered yet:
 * another process's event may still sort before them, so only readers that do not resume from there
 * get them. */
#include "config.h"

#include "fleet/kubernetes/store_int.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json_object.h>

#include "base/clock.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/random.h"
#include "host/common/proc.h"
#include "proto/json.h"

#define DETAIL_MAX 16384
#define WHAT_MAX 64
#define KEPT 20000
#define KEPT_BYTES (8u << 20)
#define ALL "labelSelector=handrail%2Ffleet%3Devent"
#define KEY_LABEL "handrail/fleet-key"
#define ID_LABEL "handrail/fleet-id"

struct hr_kube_one {
	int64_t seq, at, key;
	size_t size;
	const char *detail;
	char id[HR_FLEET_ID], what[];
};

/* ---- the list ---- */

void
hr_kube_events_init(struct hr_kube_events *e)
{
	(void)pthread_mutex_init(&e->lock, NULL);
}

void
hr_kube_events_done(struct hr_kube_events *e)
{
	size_t i;

	for (i = 0; i < e->n; i++)
		free(e->v[i]);
	free(e->v);
	(void)pthread_mutex_destroy(&e->lock);
}

/* Parses one of handrail's events. Returns NULL if it is not one, or without memory. */
static struct hr_kube_one *
read_one(struct json_object *o)
{
	const char *id = hr_kube_label(o, ID_LABEL, "");
	const char *what = hr_json_text_or(o, "reason", "");
	const char *detail = hr_json_text_or(o, "message", "");
	size_t what_len = strnlen(what, WHAT_MAX), detail_len = strnlen(detail, DETAIL_MAX);
	size_t size = sizeof(struct hr_kube_one) + what_len + detail_len + 2;
	struct hr_kube_one *e;
	struct tm tm = {0};
	char *text;

	if (strlen(id) != HR_FLEET_ID - 1)
		return NULL;
	e = malloc(size);
	if (e == NULL)
		return NULL;
	(void)strptime(hr_json_text_or(o, "firstTimestamp", ""), "%Y-%m-%dT%H:%M:%SZ", &tm);
	e->seq = strtoll(hr_object_version(o), NULL, 10);
	e->at = (int64_t)timegm(&tm);
	e->key = strtoll(hr_kube_label(o, KEY_LABEL, "0"), NULL, 10);
	e->size = size;
	memcpy(e->id, id, HR_FLEET_ID);
	memcpy(e->what, what, what_len);
	e->what[what_len] = '\0';
	text = e->what + what_len + 1;
	memcpy(text, detail, detail_len);
	text[detail_len] = '\0';
	e->detail = text;
	return e;
}

static void
drop_oldest(struct hr_kube_events *e)
{
	size_t n = e->n / 8 + 1;
	size_t i;

	for (i = 0; i < n; i++) {
		e->bytes -= e->v[i]->size;
		e->lost = e->v[i]->seq;
		free(e->v[i]);
	}
	e->n -= n;
	memmove(e->v, e->v + n, e->n * sizeof(struct hr_kube_one *));
}

static bool
make_room(struct hr_kube_events *e, size_t size)
{
	while (e->n > 0 && (e->n >= KEPT || e->bytes + size > KEPT_BYTES))
		drop_oldest(e);
	return hr_grow(&e->v, e->n, &e->room, sizeof(*e->v)) == 0;
}

/* Adds an event. Returns its number, or 0 if it is not handrail's. Called with the lock. */
static int64_t
keep(struct hr_kube_events *e, struct json_object *o)
{
	struct hr_kube_one *one = read_one(o);
	int64_t seq = one != NULL ? one->seq : 0;
	size_t at;

	if (one == NULL)
		return 0;
	if (!make_room(e, one->size)) {
		e->lost = seq > e->lost ? seq : e->lost;
		free(one);
		return seq;
	}
	for (at = e->n; at > 0 && e->v[at - 1]->seq > seq; at--)
		;
	if (seq <= e->lost || (at > 0 && e->v[at - 1]->seq == seq)) {
		free(one);
		return seq;
	}
	memmove(e->v + at + 1, e->v + at, (e->n - at) * sizeof(struct hr_kube_one *));
	e->v[at] = one;
	e->n++;
	e->bytes += one->size;
	return seq;
}

static void
keep_own(struct hr_kube_events *e, struct json_object *o)
{
	(void)pthread_mutex_lock(&e->lock);
	(void)keep(e, o);
	(void)pthread_mutex_unlock(&e->lock);
}

/* ---- writing ---- */

int
hr_kube_event_write(struct hr_kube_store *s, const char *id, const char *what, const char *detail,
    struct hr_err *err)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	struct hr_err why = {0};
	char path[256], name[40], object[HR_OBJECT_NAME], at[HR_WALL_TEXT];
	HR_BUF(b, 65536);
	HR_PUT struct json_object *o = NULL;
	int r;

	if (hr_random_hex(name, 24, err) < 0 || hr_cache_find(s->cache, id, &row, NULL, err) < 0)
		return -1;
	hr_wall_text_s(hr_wall_ms() / 1000, at);
	hr_object_row_name(id, object);
	hr_buf_addf(&b,
	    "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"handrail.%s\","
	    "\"namespace\":\"%s\",\"labels\":{\"" HR_OBJECT_LABEL "\":\"event\",\"" ID_LABEL
	    "\":\"%s\",\"" KEY_LABEL "\":\"%" PRId64 "\"}},\"type\":\"Normal\","
	    "\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"name\":\"%s\","
	    "\"namespace\":\"%s\"},\"source\":{\"component\":\"handrail-fleet\"},\"count\":1,"
	    "\"firstTimestamp\":\"%s\",\"lastTimestamp\":\"%s\"",
	    name, s->ns, id, row.key, object, s->ns, at, at);
	hr_json_put_named(&b, "reason", what);
	hr_json_put_member(&b, "message", (struct hr_span){detail, strnlen(detail, DETAIL_MAX)});
	hr_buf_addc(&b, '}');
	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/events", s->ns);
	r = hr_buf_check(&b, err);
	if (r == 0 && hr_kube_store_call(s, HR_KUBE_CREATE, path, hr_buf_str(&b), &o, &why) != 0) {
		/* the change itself has happened all the same */
		hr_log(HR_LOG_WARNING, "sandbox %s: no event can be written: %.400s", id, why.msg);
		r = hr_kube_store_fail(&why, err);
	}
	if (r == 0)
		keep_own(&s->events, o);
	return r;
}

int
hr_kube_store_event(
    struct hr_store *base, const char *id, const char *what, const char *detail, struct hr_err *err)
{
	HR_CLEAN(hr_kube_far_end) struct hr_kube_store *s = hr_kube_far_begin(base);

	return hr_kube_event_write(s, id, what, detail, err);
}

/* ---- reading ---- */

static bool
is_of(const struct hr_kube_one *one, int64_t key, const char *id)
{
	return (key == 0 || one->key == key) && (id == NULL || strcmp(one->id, id) == 0);
}

/* Returns the length of the complete part. Called with the lock. */
static size_t
complete(const struct hr_kube_events *e)
{
	size_t n = e->n;

	while (n > 0 && e->v[n - 1]->seq > e->seen)
		n--;
	return n;
}

int
hr_kube_store_events(struct hr_store *base, int64_t key, const char *id, int64_t after,
    unsigned most, hr_fleet_event_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_kube_events *e = &hr_kube_store_of(base)->events;
	size_t i, n;
	unsigned found = 0;

	(void)err;
	(void)pthread_mutex_lock(&e->lock);
	n = after == HR_FLEET_EVENTS_NOW ? e->n : complete(e);
	if (after < 0) {
		for (i = n; i > 0 && found < most; i--)
			found += is_of(e->v[i - 1], key, id);
	} else {
		for (i = n; i > 0 && e->v[i - 1]->seq > after; i--)
			;
	}
	for (found = 0; i < n && found < most; i++) {
		const struct hr_kube_one *one = e->v[i];

		if (!is_of(one, key, id))
			continue;
		fn(arg, one->seq, one->at, one->id, one->what, one->detail);
		found++;
	}
	(void)pthread_mutex_unlock(&e->lock);
	return 0;
}

int
hr_kube_store_event_ends(
    struct hr_store *base, int64_t *ret_lost, int64_t *ret_last, struct hr_err *err)
{
	struct hr_kube_events *e = &hr_kube_store_of(base)->events;
	size_t n;

	(void)err;
	(void)pthread_mutex_lock(&e->lock);
	n = complete(e);
	*ret_lost = e->lost;
	*ret_last = n > 0 ? e->v[n - 1]->seq : e->lost;
	(void)pthread_mutex_unlock(&e->lock);
	return 0;
}

/* ---- the watch ---- */

static int
on_event(void *arg, enum hr_kube_event event, struct json_object *o)
{
	struct hr_kube_store *s = arg;
	struct hr_kube_events *e = &s->events;
	bool more;

	if (event ==
	    HR_KUBE_DELETED) /* the server dropped it after an hour; it stays here for longer */
		return 0;
	(void)pthread_mutex_lock(&e->lock);
	if (event == HR_KUBE_THERE) {
		const int64_t seq = keep(e, o);

		e->newest = seq > e->newest ? seq : e->newest;
	}
	e->listing = event == HR_KUBE_LIST || (e->listing && event != HR_KUBE_LISTED);
	more = !e->listing && e->newest > e->seen; /* a list has no order */
	if (more)
		e->seen = e->newest;
	(void)pthread_mutex_unlock(&e->lock);
	if (more)
		s->fn(s->arg, "");
	return 0;
}

struct first {
	struct hr_kube_events *e;
	int64_t seq; /* 0: there is no event */
};

static int
on_item(void *arg, struct json_object *o)
{
	struct first *f = arg;
	int64_t seq;

	(void)pthread_mutex_lock(&f->e->lock);
	seq = keep(f->e, o);
	f->e->newest = seq > f->e->newest ? seq : f->e->newest;
	(void)pthread_mutex_unlock(&f->e->lock);
	if (seq > 0 && (f->seq == 0 || seq < f->seq))
		f->seq = seq;
	return 0;
}

static void *
watch_thread(void *arg)
{
	struct hr_kube_store *s = arg;

	hr_kube_store_follow(s, &s->events.kube, "events", ALL, "events", on_event);
}

int
hr_kube_store_watch_events(struct hr_kube_store *s, struct hr_err *err)
{
	struct hr_kube_events *e = &s->events;
	struct first first = {e, 0};
	struct hr_err why = {0};
	char path[256];

	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/events", s->ns);
	if (hr_kube_list(&e->kube, path, ALL, on_item, &first, NULL, 0, &why) != 0)
		return hr_kube_store_fail(&why, err);
	(void)pthread_mutex_lock(&e->lock);
	e->seen = e->newest;
	if (first.seq - 1 > e->lost)
		e->lost = first.seq - 1; /* the server has dropped the earlier events */
	(void)pthread_mutex_unlock(&e->lock);
	return hr_thread_detached(watch_thread, s, err);
}
