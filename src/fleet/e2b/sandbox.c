/* Implements the E2B API's calls for one sandbox, which c->rest names. */
#include "config.h"

#include "fleet/e2b/e2b.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json.h>

#include "base/clock.h"
#include "fleet/network.h"
#include "host/client/rest.h"
#include "proto/json.h"

#define V1_RESUME_S 15
#define V2_CONNECT_S 300
#define REFRESH_S 15

int
hr_e2b_unknown(const struct hr_fleet_call *c)
{
	return hr_e2b_say(
	    c->a, 404, "sandbox \"%.64s\" doesn't exist or you don't have access to it", c->rest);
}

int
hr_e2b_find(const struct hr_fleet_call *c, struct hr_fleet_row *row)
{
	struct hr_fleet *f = c->api->fleet;
	struct hr_err err = {0};
	enum hr_fleet_result r = hr_fleet_get(f, c->key.id, c->rest, row, &err);

	/* a branch whose start the next process of the service continues is known */
	if (r == HR_FLEET_OK && row->state == HR_FLEET_STARTING) {
		hr_fleet_row_done(row);
		r = hr_fleet_wait(f, c->rest, row, &err);
	}
	if (r == HR_FLEET_BROKEN) {
		hr_fleet_refuse(c->a, r, row, &err);
		return -1;
	}
	if (row->key != c->key.id || !hr_fleet_has_session(row->state) ||
	    row->state == HR_FLEET_STARTING)
		return hr_e2b_unknown(c);
	return 0;
}

/* Answers a result of a change; a sandbox that has ended meanwhile is unknown. */
static void
refuse(struct hr_fleet_call *c, enum hr_fleet_result r, const struct hr_fleet_row *row,
    const struct hr_err *err)
{
	if (r == HR_FLEET_NOT_FOUND || r == HR_FLEET_CONFLICT)
		(void)hr_e2b_unknown(c);
	else
		hr_fleet_refuse(c->a, r, row, err);
}

void
hr_e2b_get(struct hr_fleet_call *c)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};

	if (hr_e2b_find(c, &row) != 0)
		return;
	c->a->status = 200;
	hr_e2b_put_listed(&c->a->body, c, &row, true);
}

/* Changes the sandbox. Returns 0, or -1 after it has answered. */
static int
change(struct hr_fleet_call *c, enum hr_fleet_change what, struct hr_fleet_row *row)
{
	struct hr_err err = {0};
	enum hr_fleet_result r;

	hr_fleet_row_done(row);
	r = hr_fleet_change(c->api->fleet, c->key.id, c->rest, what, row, &err);
	if (r == HR_FLEET_OK && what != HR_FLEET_STOP) {
		hr_fleet_row_done(row);
		r = hr_fleet_wait(c->api->fleet, c->rest, row, &err);
	}
	if (r == HR_FLEET_OK)
		return 0;
	refuse(c, r, row, &err);
	return -1;
}

void
hr_e2b_kill(struct hr_fleet_call *c)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};

	if (hr_e2b_find(c, &row) == 0 && change(c, HR_FLEET_STOP, &row) == 0)
		c->a->status = 204;
}

/* Gives the sandbox another term. Returns 0, or -1 after it has answered. */
static int
lease(struct hr_fleet_call *c, int64_t seconds, bool lengthen, struct hr_fleet_row *row)
{
	struct hr_fleet_term term = {
	    .ms = seconds * 1000, .lengthen = lengthen, .pauses = row->end_pauses};
	struct json_object *pauses = hr_json_at(c->body, "autoPause");
	struct hr_err err = {0};
	enum hr_fleet_result r;

	if (pauses != NULL)
		term.pauses = hr_json_true_at(c->body, "autoPause");
	hr_fleet_row_done(row);
	r = hr_fleet_lease(c->api->fleet, c->key.id, c->rest, &term, row, &err);
	if (r == HR_FLEET_OK)
		return 0;
	refuse(c, r, row, &err);
	return -1;
}

void
hr_e2b_timeout(struct hr_fleet_call *c)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	int64_t timeout = hr_e2b_read_timeout(c, -1, INT32_MIN);

	if (c->a->status != 0 || hr_e2b_find(c, &row) != 0)
		return;
	if (hr_e2b_is_paused(&row))
		(void)hr_e2b_unknown(c);
	else if (lease(c, timeout, false, &row) == 0)
		c->a->status = 204;
}

void
hr_e2b_refresh(struct hr_fleet_call *c)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	struct json_object *v = hr_json_at(c->body, "duration");
	int64_t duration = v != NULL ? hr_json_int(v) : REFRESH_S;

	if (v != NULL && hr_json_type(v) != HR_PY_INT) {
		(void)hr_e2b_say(c->a, 400, "duration must be an integer");
		return;
	}
	duration = duration < REFRESH_S ? REFRESH_S : duration;
	if (duration > c->api->most_hours * 3600)
		duration = c->api->most_hours * 3600;
	if (hr_e2b_find(c, &row) != 0)
		return;
	if (hr_e2b_is_paused(&row))
		(void)hr_e2b_unknown(c);
	else if (lease(c, duration, true, &row) == 0)
		c->a->status = 204;
}

/* Returns 0 if the request asks for no resume without memory, or -1 after it has answered. */
static int
check_memory(struct hr_fleet_call *c)
{
	if (hr_json_at(c->body, "memory") == NULL || hr_json_true_at(c->body, "memory"))
		return 0;
	return hr_e2b_say(c->a, 400,
	    "this service pauses and resumes sandboxes with their memory only: leave memory out");
}

/* Resumes the sandbox, or lengthens the time of a running one. Answers 201 or 200. */
static void
connect_to(struct hr_fleet_call *c, int64_t timeout)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	bool was_paused;

	if (c->a->status != 0 || check_memory(c) != 0 || hr_e2b_find(c, &row) != 0)
		return;
	was_paused = hr_e2b_is_paused(&row);
	if (lease(c, timeout, true, &row) != 0 || change(c, HR_FLEET_RESUME, &row) != 0)
		return;
	if (row.state != HR_FLEET_RUNNING) {
		(void)hr_e2b_unknown(c);
		return;
	}
	c->a->status = was_paused ? 201 : 200;
	hr_e2b_put_sandbox(&c->a->body, c, &row);
}

void
hr_e2b_connect(struct hr_fleet_call *c)
{
	connect_to(c, hr_e2b_read_timeout(c, -1, 0));
}

void
hr_e2b_connect_v2(struct hr_fleet_call *c)
{
	connect_to(c, hr_e2b_read_timeout(c, V2_CONNECT_S, 0));
}

void
hr_e2b_resume(struct hr_fleet_call *c)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};

	if (hr_e2b_find(c, &row) != 0)
		return;
	if (!hr_e2b_is_paused(&row))
		(void)hr_e2b_say(c->a, 409, "sandbox %s is already running", row.id);
	else
		connect_to(c, hr_e2b_read_timeout(c, V1_RESUME_S, 0));
}

void
hr_e2b_pause(struct hr_fleet_call *c)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	struct json_object *memory = hr_json_at(c->body, "memory");
	bool keeps = memory == NULL || json_object_get_boolean(memory);

	if (memory != NULL && !json_object_is_type(memory, json_type_boolean)) {
		(void)hr_e2b_say(c->a, 400, "memory must be true or false");
		return;
	}
	if ((!keeps && strcmp(c->api->kind, "docker") != 0 &&
		c->api->fleet->engine->copies == NULL && check_memory(c) != 0) ||
	    hr_e2b_find(c, &row) != 0)
		return;
	if (hr_e2b_is_paused(&row)) {
		(void)hr_e2b_say(c->a, 409, "sandbox %s is already paused", row.id);
		return;
	}
	if (c->api->fleet->engine->stays) {
		(void)hr_e2b_say(c->a, 400, "this service cannot pause sandboxes");
		return;
	}
	if (change(c, keeps ? HR_FLEET_PAUSE : HR_FLEET_PAUSE_FILES, &row) != 0)
		return;
	if (row.state == HR_FLEET_PAUSED)
		c->a->status = 204;
	else
		(void)hr_e2b_say(c->a, 500, "the sandbox could not be paused: %s", row.reason);
}

void
hr_e2b_network(struct hr_fleet_call *c)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	HR_PUT struct json_object *network = NULL;
	struct hr_err err = {0};
	enum hr_fleet_result r;

	if (hr_e2b_find(c, &row) != 0)
		return;
	if (hr_json_type(c->body) != HR_PY_DICT) {
		(void)hr_e2b_say(c->a, 400, "the body must be a JSON object");
		return;
	}
	if (hr_json_at(c->body, "maskRequestHost") != NULL ||
	    hr_json_at(c->body, "httpsPorts") != NULL) {
		(void)hr_e2b_say(c->a, 400,
		    "maskRequestHost and httpsPorts cannot be changed after the create: leave them "
		    "out");
		return;
	}
	if (hr_e2b_read_network(c, c->body, &network) != 0)
		return;
	/* an absent member clears its rules: without any rule all of the Internet is open again */
	if (network == NULL)
		network = hr_json_object(
		    &err, "allowInternetAccess", json_object_new_boolean(true), NULL);
	hr_fleet_row_done(&row);
	r = network == NULL
		? HR_FLEET_BROKEN
		: hr_fleet_network_set(c->api->fleet, c->key.id, c->rest, network, &row, &err);
	if (r == HR_FLEET_OK)
		c->a->status = 204;
	else
		refuse(c, r, &row, &err);
}

/* ---- metrics ---- */

/* A sample is taken when a client asks for it, and at most every SAMPLE_S seconds, so that nothing
 * wakes a sandbox that nobody watches. The latest samples of all sandboxes are kept, for an hour.
 */
#define SAMPLE_S 5
#define KEPT_S 3600
#define SAMPLES 2048

struct sample {
	char id[HR_FLEET_ID];
	int64_t at;
	double v[6]; /* same order as names[] */
};

static const struct {
	const char *ours, *theirs;
	int digits;
} names[] = {{"cpuUsedPct", "cpu_used_pct", 2}, {"memUsed", "mem_used", 0},
    {"memTotal", "mem_total", 0}, {"memCache", "mem_cache", 0}, {"diskUsed", "disk_used", 0},
    {"diskTotal", "disk_total", 0}};

static struct sample samples[SAMPLES];
static size_t next_sample;
static pthread_mutex_t sampling = PTHREAD_MUTEX_INITIALIZER;

static int64_t
last_sample(const char *id)
{
	int64_t last = 0;
	size_t i;

	(void)pthread_mutex_lock(&sampling);
	for (i = 0; i < SAMPLES; i++)
		if (samples[i].at > last && strcmp(samples[i].id, id) == 0)
			last = samples[i].at;
	(void)pthread_mutex_unlock(&sampling);
	return last;
}

/* Asks the sandbox; its answer may be forged. */
static void
take_sample(const struct hr_fleet_row *row)
{
	HR_CLEAN(hr_rest_clean) struct hr_rest *r = hr_fleet_asker(row->at);
	HR_PUT struct json_object *o = NULL;
	struct sample s = {.at = (int64_t)time(NULL)};
	size_t i;

	if (r == NULL || hr_rest_header(r, "X-Session-API-Key", row->server_key, true, NULL) != 0 ||
	    hr_rest_get(r, "/handrail/e2b/metrics", &o, NULL) != 0 || o == NULL)
		return;
	(void)snprintf(s.id, sizeof(s.id), "%s", row->id);
	for (i = 0; i < sizeof(names) / sizeof(*names); i++) {
		s.v[i] = hr_json_number_at(o, names[i].theirs);
		if (!(s.v[i] >= 0 && s.v[i] < 1e15))
			return;
	}
	(void)pthread_mutex_lock(&sampling);
	samples[next_sample++ % SAMPLES] = s;
	(void)pthread_mutex_unlock(&sampling);
}

static void
put_sample(struct hr_buf *b, const struct sample *s, int64_t cpus)
{
	char at[HR_WALL_TEXT];
	size_t i;

	hr_wall_text(s->at * 1000, at);
	hr_json_put_comma(b);
	hr_buf_addf(b, "{\"timestamp\":\"%s\",\"timestampUnix\":%" PRId64 ",\"cpuCount\":%" PRId64,
	    at, s->at, cpus);
	for (i = 0; i < sizeof(names) / sizeof(*names); i++)
		hr_buf_addf(b, ",\"%s\":%.*f", names[i].ours, names[i].digits, s->v[i]);
	hr_buf_addc(b, '}');
}

/* Reads a time of the query; `otherwise` if there is none. */
static int64_t
time_of(const struct hr_fleet_call *c, const char *name, int64_t otherwise)
{
	HR_BUF(b, HR_E2B_QUERY_MAX);
	const char *text = hr_fleet_query(&b, c->query, name);

	return *text != '\0' ? strtoll(text, NULL, 10) : otherwise;
}

void
hr_e2b_metrics(struct hr_fleet_call *c)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	int64_t now = (int64_t)time(NULL), from = time_of(c, "start", now - KEPT_S);
	int64_t to = time_of(c, "end", now), cpus, mb;
	size_t i;

	if (hr_e2b_find(c, &row) != 0)
		return;
	if (row.state == HR_FLEET_RUNNING && now - last_sample(row.id) >= SAMPLE_S)
		take_sample(&row);
	hr_e2b_limits(c->api, row.factor, &cpus, &mb);
	c->a->status = 200;
	hr_buf_addc(&c->a->body, '[');
	(void)pthread_mutex_lock(&sampling);
	for (i = 0; i < SAMPLES; i++) { /* the oldest comes first */
		const struct sample *s = &samples[(next_sample + i) % SAMPLES];

		if (s->at > now - KEPT_S && s->at >= from && s->at <= to &&
		    strcmp(s->id, row.id) == 0)
			put_sample(&c->a->body, s, cpus);
	}
	(void)pthread_mutex_unlock(&sampling);
	hr_buf_addc(&c->a->body, ']');
}

/* ---- logs ---- */

void
hr_e2b_logs(struct hr_fleet_call *c)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};

	if (hr_e2b_find(c, &row) != 0)
		return;
	(void)hr_e2b_say(c->a, 501, "this service has no logs of sandboxes for the E2B API");
}
