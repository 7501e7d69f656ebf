/* Serves the control API of E2B (doc/e2b.md): its routes, and the form that all its answers have.
 */
#include "config.h"

#include "fleet/e2b/e2b.h"

#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "base/text/percent.h"
#include "proto/json.h"

#define PATH_MOST 1024
#define FOR_LONG_S 15 /* a refusal with this Retry-After or more is no matter of seconds */

void
hr_e2b_alias(struct hr_fleet_call *c)
{
	char snapshot[HR_FLEET_SNAPSHOT_NAME];
	struct hr_e2b_template t;
	struct hr_err err = {0};
	bool public = hr_e2b_template(c->api, c->rest, &t);

	if (!public && hr_e2b_snapshot_template(c, c->rest, snapshot, &t, &err) <= 0) {
		(void)hr_e2b_say(c->a, 404, "template '%.200s' not found", c->rest);
		return;
	}
	c->a->status = 200;
	hr_buf_addc(&c->a->body, '{');
	hr_json_put_named(&c->a->body, "templateID", t.name);
	hr_buf_addf(&c->a->body, ",\"public\":%s}", public ? "true" : "false");
}

static const struct hr_e2b_row rows[] = {
    {"POST", "/v2/sandboxes", HR_SCOPE_USE, hr_e2b_create_v2},
    {"GET", "/v2/sandboxes", HR_SCOPE_READ, hr_e2b_list_v2},
    {"POST", "/v2/sandboxes/*/connect", HR_SCOPE_USE, hr_e2b_connect_v2},
    {"GET", "/v2/sandboxes/*/logs", HR_SCOPE_READ, hr_e2b_logs},
    {"POST", "/sandboxes", HR_SCOPE_USE, hr_e2b_create_v1},
    {"GET", "/sandboxes", HR_SCOPE_READ, hr_e2b_list_v1},
    {"GET", "/sandboxes/*", HR_SCOPE_READ, hr_e2b_get},
    {"DELETE", "/sandboxes/*", HR_SCOPE_USE, hr_e2b_kill},
    {"POST", "/sandboxes/*/timeout", HR_SCOPE_USE, hr_e2b_timeout},
    {"POST", "/sandboxes/*/connect", HR_SCOPE_USE, hr_e2b_connect},
    {"POST", "/sandboxes/*/resume", HR_SCOPE_USE, hr_e2b_resume},
    {"POST", "/sandboxes/*/pause", HR_SCOPE_USE, hr_e2b_pause},
    {"POST", "/sandboxes/*/refreshes", HR_SCOPE_USE, hr_e2b_refresh},
    {"GET", "/sandboxes/*/metrics", HR_SCOPE_READ, hr_e2b_metrics},
    {"GET", "/sandboxes/*/logs", HR_SCOPE_READ, hr_e2b_logs},
    {"PUT", "/sandboxes/*/network", HR_SCOPE_USE, hr_e2b_network},
    {"POST", "/sandboxes/*/fork", HR_SCOPE_USE, hr_e2b_fork},
    {"POST", "/sandboxes/*/snapshots", HR_SCOPE_USE, hr_e2b_snapshot},
    {"GET", "/snapshots", HR_SCOPE_READ, hr_e2b_list_snapshots},
    {"GET", "/templates/aliases/*", HR_SCOPE_READ, hr_e2b_alias},
    {"DELETE", "/templates/*", HR_SCOPE_USE, hr_e2b_unsnapshot},
};
#define ROWS (sizeof(rows) / sizeof(*rows))

/* Refuses the missing parts of the API by name: a 404 would say that a sandbox is gone. These
 * precede the rows; a "**" at the end takes whatever follows. */
static const struct {
	const char *path, *says;
} missing[] = {
    {"/sandboxes/metrics**", "no metrics of several sandboxes; ask for each one's"},
    {"/volumes**", "no volumes; upload files after the create"},
    {"/volumecontent**", "no volumes; upload files after the create"},
    {"/secrets**", "no secrets of clients; pass variables with envs at the create"},
    {"/templates", "no builds of templates; its operator names images with --e2b-template"},
    {"/templates/tags**", "no tags of templates"},
    {"/v2/templates**", "no builds of templates; its operator names images with --e2b-template"},
    {"/v3/templates**", "no builds of templates; its operator names images with --e2b-template"},
};

/* Matches a path with a pattern. Fills `segment` with the decoded one that "*" stands for; a
 * segment that does not fit is "". */
static bool
matches(const char *pattern, const char *path, char segment[PATH_MOST])
{
	HR_BUF(b, PATH_MOST);
	size_t n;

	for (; *pattern != '\0' && strcmp(pattern, "**") != 0; pattern++) {
		if (*pattern != '*') {
			if (*path++ != *pattern)
				return false;
			continue;
		}
		n = strcspn(path, "/");
		hr_percent_decode(&b, path, n, false);
		if (n == 0 || hr_buf_check(&b, NULL) != 0)
			return false;
		(void)snprintf(segment, PATH_MOST, "%s",
		    memchr(b.p, '\0', b.len) == NULL ? hr_buf_str(&b) : "");
		path += n;
	}
	return *pattern == '*' ? *path == '\0' || *path == '/' : *path == '\0';
}

static void
refuse_path(struct hr_fleet_call *c, const char *path, char segment[PATH_MOST])
{
	bool other = false;
	size_t i;

	if (strncmp(path, "/templates/", 11) == 0 && strncmp(path + 11, "aliases/", 8) != 0)
		path = "/templates";
	for (i = 0; i < sizeof(missing) / sizeof(*missing); i++)
		if (matches(missing[i].path, path, segment)) {
			(void)hr_e2b_say(c->a, 501, "this service has %s", missing[i].says);
			return;
		}
	for (i = 0; i < ROWS; i++)
		other |= matches(rows[i].path, path, segment);
	(void)hr_e2b_say(c->a, other ? 405 : 404, other ? "Method Not Allowed" : "Not Found");
}

static void
handle_row(struct hr_fleet_call *c, const struct hr_e2b_row *row, const char *segment)
{
	if (hr_fleet_who(c->api, c->q, row->scope, &c->key, c->a) != 0)
		return;
	if (c->q->body_len > 0 &&
	    (hr_json_decode(c->q->body, c->q->body_len, &c->body, NULL) != 0 ||
		hr_json_has_null(c->body))) {
		(void)hr_e2b_say(c->a, 400, "the body is not JSON, or has a null character");
		return;
	}
	c->rest = segment;
	row->handle(c);
}

static bool
is_missing(const char *path, char segment[PATH_MOST])
{
	size_t i;

	for (i = 0; i < sizeof(missing) / sizeof(*missing); i++)
		if (matches(missing[i].path, path, segment))
			return true;
	return false;
}

static void
handle(struct hr_fleet_call *c, const char *path)
{
	char segment[PATH_MOST] = "";
	size_t i;

	if (c->api->fleet->store->ops->lease == NULL) {
		(void)hr_e2b_say(c->a, 501, "the E2B API needs the engine local");
		return;
	}
	for (i = 0; i < ROWS && !is_missing(path, segment); i++)
		if (strcmp(rows[i].method, c->q->method) == 0 &&
		    matches(rows[i].path, path, segment)) {
			handle_row(c, &rows[i], segment);
			return;
		}
	if (hr_fleet_who(c->api, c->q, HR_SCOPE_READ, &c->key, c->a) == 0)
		refuse_path(c, path, segment);
}

/* Gives the errors that all APIs share the form of this one. */
static void
convert(struct hr_fleet_answer *a)
{
	static const char before[] = "{\"detail\":";
	HR_BUF(b, a->body.cap);

	if (a->status < 400 || strncmp(hr_buf_str(&a->body), before, strlen(before)) != 0)
		return;
	hr_buf_addf(
	    &b, "{\"code\":%d,\"message\":%s", a->status, hr_buf_str(&a->body) + strlen(before));
	hr_buf_reset(&a->body);
	hr_buf_adds(&a->body, hr_buf_str(&b));
	if (a->status == 429 && a->retry_after_s >= FOR_LONG_S) {
		a->retry_after_s = 0;
		hr_buf_adds(&a->head, "Should-Retry: false\r\n");
	}
}

void
hr_fleet_handle_e2b(
    const struct hr_fleet_api *api, const struct hr_fleet_request *q, struct hr_fleet_answer *a)
{
	struct hr_fleet_request own = *q;
	struct hr_fleet_call c = {.api = api, .q = &own, .a = a};
	size_t len = strcspn(q->uri, "?");
	char path[PATH_MOST], key[64];

	own.api_key = hr_e2b_key(q->api_key, key);
	hr_buf_adds(&a->head, HR_E2B_CORS "Access-Control-Expose-Headers: X-Next-Token, "
					  "X-Total-Running, Retry-After, Should-Retry\r\n");
	if (strcmp(q->method, "OPTIONS") == 0) {
		a->status = 204;
		return;
	}
	if (len >= sizeof(path)) {
		(void)hr_e2b_say(a, 404, "Not Found");
		return;
	}
	memcpy(path, q->uri, len);
	path[len] = '\0';
	c.query = q->uri[len] == '?' ? q->uri + len + 1 : "";
	if (*q->api_key == '\0' && *q->authorization != '\0')
		(void)hr_e2b_say(a, 401,
		    "this service takes no Authorization header: send the key as X-API-KEY");
	else
		handle(&c, path);
	json_object_put(c.body);
	convert(a);
	explicit_bzero(key, sizeof(key));
}
