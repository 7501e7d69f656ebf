/* What happened, as Events of the API server, which keeps them for an hour unless it is told
 * otherwise; their versions are their order. */
#include "config.h"

#include "fleet/kubernetes/store_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json_object.h>

#include "base/log.h"
#include "base/random.h"
#include "proto/json.h"

#define DETAIL_MAX 16384
#define KEY_LABEL "handrail/fleet-key"
#define ID_LABEL "handrail/fleet-id"

static void
stamp(int64_t at, char text[32])
{
	time_t t = (time_t)at;
	struct tm tm;

	(void)strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
}

int
hr_kube_store_event(
    struct hr_store *base, const char *id, const char *what, const char *detail, struct hr_err *err)
{
	struct hr_kube_store *s = hr_kube_store_of(base);
	struct hr_fleet_row row = {.request = NULL};
	struct hr_err why = {0};
	char path[256], name[40], object[HR_OBJECT_NAME], at[32];
	struct hr_buf b;
	int r;

	if (hr_random_hex(name, 24, err) < 0 || hr_cache_find(s->cache, id, &row, NULL, err) < 0)
		return -1;
	stamp((int64_t)time(NULL), at);
	hr_object_row_name(id, object);
	hr_buf_init(&b, 65536);
	hr_buf_addf(&b,
	    "{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"handrail.%s\","
	    "\"namespace\":\"%s\",\"labels\":{\"" HR_OBJECT_LABEL "\":\"event\",\"" ID_LABEL
	    "\":\"%s\",\"" KEY_LABEL "\":\"%" PRId64 "\"}},\"type\":\"Normal\","
	    "\"involvedObject\":{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"name\":\"%s\","
	    "\"namespace\":\"%s\"},\"source\":{\"component\":\"handrail-fleet\"},\"count\":1,"
	    "\"firstTimestamp\":\"%s\",\"lastTimestamp\":\"%s\",\"reason\":",
	    name, s->ns, id, row.key, object, s->ns, at, at);
	(void)hr_json_put_str(&b, what, strlen(what), HR_JSON_REPLACE);
	hr_buf_adds(&b, ",\"message\":");
	(void)hr_json_put_str(&b, detail, strnlen(detail, DETAIL_MAX), HR_JSON_REPLACE);
	hr_buf_addc(&b, '}');
	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/events", s->ns);
	r = hr_buf_check(&b, err);
	if (r == 0 &&
	    hr_kube_call(&s->kube, HR_KUBE_CREATE, path, hr_buf_str(&b), NULL, &why) != 0) {
		/* what it is about has happened all the same */
		hr_log(HR_LOG_WARNING, "sandbox %s: no event can be written: %.400s", id, why.msg);
		r = hr_kube_store_fail(&why, err);
	}
	hr_buf_done(&b);
	hr_fleet_row_done(&row);
	return r;
}

struct one {
	int64_t seq;
	struct json_object *o;
};

struct found {
	int64_t after;
	struct one *list;
	size_t n, room;
};

static int
on_item(void *arg, struct json_object *o)
{
	struct found *f = arg;
	int64_t seq = strtoll(hr_object_version(o), NULL, 10);
	struct one *p;

	if (f->after >= 0 && seq <= f->after)
		return 0;
	if (f->n == f->room) {
		f->room = f->room > 0 ? 2 * f->room : 64;
		p = reallocarray(f->list, f->room, sizeof(*p));
		if (p == NULL) {
			f->room = f->n;
			return 1;
		}
		f->list = p;
	}
	f->list[f->n++] = (struct one){seq, json_object_get(o)};
	return 0;
}

static int
by_seq(const void *a, const void *b)
{
	const struct one *x = a, *y = b;

	return (x->seq > y->seq) - (x->seq < y->seq);
}

static void
tell(const struct one *e, hr_fleet_event_fn *fn, void *arg)
{
	struct json_object *labels = hr_json_at(hr_json_at(e->o, "metadata"), "labels");
	struct tm tm = {0};

	(void)strptime(hr_json_text_or(e->o, "firstTimestamp", ""), "%Y-%m-%dT%H:%M:%SZ", &tm);
	fn(arg, e->seq, (int64_t)timegm(&tm), hr_json_text_or(labels, ID_LABEL, ""),
	    hr_json_text_or(e->o, "reason", ""), hr_json_text_or(e->o, "message", ""));
}

int
hr_kube_store_events(struct hr_store *base, int64_t key, const char *id, int64_t after,
    unsigned most, hr_fleet_event_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_kube_store *s = hr_kube_store_of(base);
	struct found f = {.after = after};
	struct hr_err why = {0};
	char path[256];
	struct hr_buf q;
	size_t from = 0, to;
	int r;

	hr_buf_init(&q, 4096);
	hr_buf_adds(&q, "labelSelector=handrail%2Ffleet%3Devent");
	if (id != NULL) {
		hr_buf_adds(&q, "%2Chandrail%2Ffleet-id%3D");
		hr_http_escape(&q, id);
	}
	if (key > 0)
		hr_buf_addf(&q, "%%2Chandrail%%2Ffleet-key%%3D%" PRId64, key);
	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/events", s->ns);
	r = hr_buf_check(&q, err);
	if (r == 0 && hr_kube_list(&s->kube, path, hr_buf_str(&q), on_item, &f, NULL, 0, &why) != 0)
		r = hr_kube_store_fail(&why, err);
	if (f.n > 0)
		qsort(f.list, f.n, sizeof(*f.list), by_seq);
	to = f.n;
	if (after < 0 && f.n > most)
		from = f.n - most;
	else if (f.n > most)
		to = most;
	for (size_t i = 0; i < f.n; i++) {
		if (r == 0 && i >= from && i < to)
			tell(&f.list[i], fn, arg);
		json_object_put(f.list[i].o);
	}
	free(f.list);
	hr_buf_done(&q);
	return r;
}
