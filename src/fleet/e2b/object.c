/* Composes the objects and the errors in the answers of the E2B API. */
#include "config.h"

#include "fleet/e2b/e2b.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/clock.h"
#include "fleet/network.h"
#include "proto/json.h"

#define PERCENT 100
#define NEVER_MS (INT32_MAX * INT64_C(1000))
#define MEGABYTE (1024 * 1024)

int
hr_e2b_say(struct hr_fleet_answer *a, int status, const char *format, ...)
{
	char text[600];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(text, sizeof(text), format, ap);
	va_end(ap);
	a->status = status;
	hr_buf_reset(&a->body);
	hr_buf_addf(&a->body, "{\"code\":%d", status);
	hr_json_put_named(&a->body, "message", text);
	hr_buf_addc(&a->body, '}');
	return -1;
}

struct json_object *
hr_e2b_of(const struct hr_fleet_row *row, struct json_object **ret)
{
	if (hr_json_decode(row->request, strlen(row->request), ret, NULL) != 0)
		*ret = NULL;
	return hr_json_typed_at(*ret, "e2b", HR_PY_DICT);
}

bool
hr_e2b_is_paused(const struct hr_fleet_row *row)
{
	return row->state == HR_FLEET_PAUSED || row->state == HR_FLEET_PAUSING;
}

void
hr_e2b_limits(const struct hr_fleet_api *api, int64_t factor, int64_t *ret_cpus, int64_t *ret_mb)
{
	const struct hr_fleet_options *o = api->options;
	int64_t cpus = sysconf(_SC_NPROCESSORS_ONLN);
	int64_t pages = sysconf(_SC_PHYS_PAGES), mb = pages * sysconf(_SC_PAGESIZE) / MEGABYTE;

	/* part of a core counts as one */
	if (o->cpu_percent > 0 && (o->cpu_percent * factor + PERCENT - 1) / PERCENT < cpus)
		cpus = (o->cpu_percent * factor + PERCENT - 1) / PERCENT;
	if (o->memory_mb > 0 && o->memory_mb * factor < mb)
		mb = o->memory_mb * factor;
	*ret_cpus = cpus > 0 ? cpus : 1;
	*ret_mb = mb > 0 ? mb : 1;
}

/* Appends the members that all objects have. */
static void
put_common(struct hr_buf *b, const struct hr_fleet_row *row, struct json_object *e2b)
{
	const char *template = hr_json_text_or(e2b, "template", "base");

	hr_buf_addc(b, '{');
	hr_json_put_named(b, "templateID", template);
	hr_json_put_named(b, "alias", template);
	hr_json_put_named(b, "sandboxID", row->id);
	hr_json_put_named(b, "clientID", "handrail");
	hr_json_put_named(b, "envdVersion", HR_E2B_ENVD_VERSION);
}

/* Appends the domain only if it is the client's way to the service: requests to another one would
 * fail. */
static void
put_domain(struct hr_buf *b, const struct hr_fleet_call *c)
{
	const char *host = c->q->host, *domain = c->api->domain, *p;
	size_t n = domain != NULL ? strlen(domain) : 0;

	p = n > 0 ? strstr(host, domain) : NULL;
	if (p == NULL || (p != host && p[-1] != '.') || (p[n] != '\0' && p[n] != ':'))
		hr_buf_adds(b, ",\"domain\":null");
	else
		hr_json_put_named(b, "domain", p);
}

void
hr_e2b_put_sandbox(struct hr_buf *b, const struct hr_fleet_call *c, const struct hr_fleet_row *row)
{
	HR_PUT struct json_object *request = NULL;
	struct json_object *e2b = hr_e2b_of(row, &request);
	char traffic[HR_E2B_TRAFFIC_TOKEN];

	put_common(b, row, e2b);
	hr_json_put_named(b, "envdAccessToken", row->session_key);
	if (hr_json_at(e2b, "public") != NULL && !hr_json_true_at(e2b, "public")) {
		hr_e2b_traffic_token(row->session_key, traffic);
		hr_json_put_named(b, "trafficAccessToken", traffic);
	}
	put_domain(b, c);
	hr_buf_addc(b, '}');
}

/* Writes rules as this API has them, in which 0.0.0.0/0 is an entry of denyOut. Returns -1 without
 * memory. */
static int
put_rules(struct json_object *o, struct json_object *rules)
{
	struct json_object *deny = json_object_new_array();
	bool bad = deny == NULL, open = hr_json_true_at(rules, "allowInternetAccess");
	size_t i;

	if (!open)
		bad |= hr_json_append(deny, json_object_new_string(HR_E2B_ALL), NULL) != 0;
	for (i = 0; i < hr_json_count(hr_json_at(rules, "denyOut")); i++)
		bad |=
		    hr_json_append(deny,
			json_object_get(hr_json_entry(hr_json_at(rules, "denyOut"), i)), NULL) != 0;
	json_object_object_foreach(rules, name, value)
	{
		if (strcmp(name, "denyOut") != 0 && strcmp(name, "allowInternetAccess") != 0)
			bad |= hr_json_set(o, name, json_object_get(value), NULL) != 0;
	}
	if (bad || hr_json_count(deny) == 0)
		json_object_put(deny);
	else
		bad = hr_json_set(o, "denyOut", deny, NULL) != 0;
	return bad ? -1 : 0;
}

/* Appends the network: the rules that hold now, whichever API set them. */
static void
put_network(struct hr_buf *b, const struct hr_fleet_row *row, struct json_object *e2b)
{
	HR_PUT struct json_object *rules = hr_fleet_network_of(row);
	HR_PUT struct json_object *o = json_object_new_object();
	static const char *const kept[] = {"allowPublicTraffic", "maskRequestHost", "httpsPorts"};
	struct json_object *v;
	size_t i;

	if (rules != NULL || hr_json_at(e2b, "internet") != NULL)
		hr_buf_addf(b, ",\"allowInternetAccess\":%s",
		    rules == NULL || hr_json_true_at(rules, "allowInternetAccess") ? "true"
										   : "false");
	if (rules == NULL && hr_json_at(e2b, "network") == NULL)
		return;
	if (o == NULL || (rules != NULL && put_rules(o, rules) != 0))
		return;
	for (i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
		v = hr_json_at(hr_json_at(e2b, "network"), kept[i]);
		if (v != NULL && hr_json_set(o, kept[i], json_object_get(v), NULL) != 0)
			return;
	}
	hr_buf_adds(b, ",\"network\":");
	hr_json_put_whole(b, o);
}

/* Returns the name of how the sandbox is paused: one whose processes have ended keeps its files.
 * NULL: that is not known, since the engine does not answer or still pauses it. */
static const char *
pause_mode(const struct hr_fleet *f, const struct hr_fleet_row *row)
{
	struct hr_err err = {0};
	char state[32];

	if (f->engine->state(f->engine_self, row->id, state, &err) != 0)
		return NULL;
	return strcmp(state, "exited") == 0   ? "filesystem"
	       : strcmp(state, "paused") == 0 ? "full"
					      : NULL;
}

bool
hr_e2b_pauses_cold(struct json_object *o)
{
	return hr_json_at(o, "autoPauseMemory") != NULL && !hr_json_true_at(o, "autoPauseMemory");
}

static void
put_detail(struct hr_buf *b, const struct hr_fleet_call *c, const struct hr_fleet_row *row,
    struct json_object *e2b)
{
	const char *mode = hr_e2b_is_paused(row) ? pause_mode(c->api->fleet, row) : NULL;

	hr_json_put_named(b, "envdAccessToken", row->session_key);
	put_domain(b, c);
	put_network(b, row, e2b);
	hr_buf_addf(b, ",\"lifecycle\":{\"onTimeout\":\"%s\",\"autoResume\":%s}",
	    row->end_pauses ? "pause" : "kill",
	    hr_json_true_at(e2b, "autoResume") ? "true" : "false");
	if (mode != NULL)
		hr_json_put_named(b, "pauseMode", mode);
}

void
hr_e2b_put_listed(
    struct hr_buf *b, const struct hr_fleet_call *c, const struct hr_fleet_row *row, bool detail)
{
	HR_PUT struct json_object *request = NULL;
	struct json_object *e2b = hr_e2b_of(row, &request);
	struct json_object *metadata = hr_json_typed_at(e2b, "metadata", HR_PY_DICT);
	char started[HR_WALL_TEXT], ends[HR_WALL_TEXT];
	int64_t cpus, mb, disk = 0, until_ms = row->ends_ms;
	struct statvfs fs;

	hr_e2b_limits(c->api, row->factor, &cpus, &mb);
	if (statvfs(c->api->options->dir, &fs) == 0)
		disk = (int64_t)(fs.f_blocks * fs.f_frsize / MEGABYTE);
	hr_wall_text(row->created * 1000, started);
	/* clients expect a time also where there is no end, or none yet */
	if (until_ms == 0)
		until_ms = row->created * 1000 + (row->life_ms > 0 ? row->life_ms : NEVER_MS);
	hr_wall_text(until_ms, ends);
	put_common(b, row, e2b);
	hr_json_put_named(b, "startedAt", started);
	hr_json_put_named(b, "endAt", ends);
	hr_buf_addf(b,
	    ",\"cpuCount\":%" PRId64 ",\"memoryMB\":%" PRId64 ",\"diskSizeMB\":%" PRId64
	    ",\"state\":\"%s\",\"volumeMounts\":[],\"metadata\":",
	    cpus, mb, disk, hr_e2b_is_paused(row) ? "paused" : "running");
	if (metadata != NULL)
		hr_json_put_whole(b, metadata);
	else
		hr_buf_adds(b, "{}");
	if (detail)
		put_detail(b, c, row, e2b);
	hr_buf_addc(b, '}');
}
