/* Implements forks and snapshots of the E2B API. A snapshot is one of the key's (fleet/copies.h)
 * with the name "NAME.TEMPLATE", so that a create from it has the user, the directory and the root
 * of its template. */
#include "config.h"

#include "fleet/copies.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/random.h"
#include "base/strv.h"
#include "fleet/e2b/e2b.h"
#include "proto/json.h"

#define FORK_TIMEOUT_S 15
#define DIGITS 12

/* Returns true, or false after it has answered that the engine copies nothing. */
static bool
can(const struct hr_fleet_call *c, const char *says)
{
	if (c->api->fleet->engine->copies == NULL)
		(void)hr_e2b_say(c->a, 501, "this service has %s", says);
	return c->api->fleet->engine->copies != NULL;
}

static void
refuse(const struct hr_fleet_call *c, enum hr_fleet_result r, const struct hr_fleet_row *row,
    const struct hr_err *err)
{
	if (r == HR_FLEET_NOT_FOUND)
		(void)hr_e2b_unknown(c);
	else
		hr_fleet_refuse(c->a, r, row, err);
}

/* ---- forks ---- */

/* Appends a branch, or why it does not run. */
static void
put_branch(const struct hr_fleet_call *c, const struct hr_fleet_row *row)
{
	struct hr_buf *b = &c->a->body;

	if (hr_fleet_has_session(row->state)) {
		hr_buf_adds(b, "{\"sandbox\":");
		hr_e2b_put_sandbox(b, c, row);
	} else {
		hr_buf_adds(b, "{\"error\":{\"code\":500");
		hr_json_put_named(
		    b, "message", row->reason[0] != '\0' ? row->reason : "the branch does not run");
		hr_buf_addc(b, '}');
	}
	hr_buf_addc(b, '}');
}

static int
name_sessions(struct hr_strv *sessions, int64_t n, struct hr_err *err)
{
	char digits[33];

	if (hr_random_hex(digits, sizeof(digits) - 1, err) < 0)
		return -1;
	for (; n > 0; n--)
		hr_strv_addf(sessions, "e2b-%s-%d", digits, (int)n);
	return sessions->failed ? hr_err_nomem(err) : 0;
}

void
hr_e2b_fork(struct hr_fleet_call *c)
{
	struct hr_fleet_row rows[HR_FLEET_FORK_MAX];
	struct json_object *count = hr_json_at(c->body, "count");
	int64_t n = count != NULL ? hr_json_int(count) : 1;
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row parent = {.request = NULL};
	HR_CLEAN(hr_strv_done) struct hr_strv sessions = {0};
	struct hr_fleet_term term = {0};
	struct hr_fleet_fork how = {.id = c->rest, .freeze = true, .term = &term};
	HR_FREE char *json = NULL;
	enum hr_fleet_result r = HR_FLEET_BROKEN;
	struct hr_err err = {0};
	size_t i;

	if (!can(c, "no forks; create a sandbox, and copy files into it"))
		return;
	if (!c->api->file_forks) {
		(void)hr_e2b_say(c->a, 501,
		    "this service forks no memory: its operator can allow forks of the files with "
		    "--e2b-file-forks");
		return;
	}
	if ((count != NULL && hr_json_type(count) != HR_PY_INT) || n < 1 || n > HR_FLEET_FORK_MAX) {
		(void)hr_e2b_say(c->a, 400, "count must be an integer from 1 to 100");
		return;
	}
	term.ms = hr_e2b_read_timeout(c, FORK_TIMEOUT_S, 1) * 1000;
	if (c->a->status != 0 || hr_e2b_find(c, &parent) != 0)
		return;
	term.pauses = parent.end_pauses;
	memset(rows, 0, sizeof(rows));
	if (name_sessions(&sessions, n, &err) == 0) {
		how.sessions = hr_strv_list(&sessions);
		how.n = sessions.n;
		r = hr_fleet_fork(c->api->fleet, &c->key, &how, rows, &json, &err);
	}
	if (r != HR_FLEET_OK) {
		refuse(c, r, &rows[0], &err);
	} else {
		c->a->status = 201;
		for (i = 0; i < how.n; i++) {
			hr_buf_addc(&c->a->body, i == 0 ? '[' : ',');
			put_branch(c, &rows[i]);
		}
		hr_buf_addc(&c->a->body, ']');
	}
	for (i = 0; i < how.n; i++)
		hr_fleet_row_done(&rows[i]);
}

/* ---- snapshots ---- */

/* Returns the template in the name of a snapshot, after its dot, or NULL: the Runtime API has made
 * the snapshot. */
static const char *
template_of(const struct hr_fleet_api *api, const char *snapshot)
{
	struct hr_e2b_template t;
	const char *p = snapshot;

	while ((p = strchr(p, '.')) != NULL)
		if (hr_e2b_template(api, ++p, &t))
			return p;
	return NULL;
}

/* Returns true for the name of a snapshot, with or without its template. */
static bool
is_called(const struct hr_fleet_api *api, const char *snapshot, const char *name)
{
	const char *template = template_of(api, snapshot);
	size_t n = strlen(name);

	return strcmp(snapshot, name) == 0 ||
	       (template != NULL && (size_t)(template - snapshot) == n + 1 &&
		   strncmp(snapshot, name, n) == 0);
}

int
hr_e2b_snapshot_template(const struct hr_fleet_call *c, const char *name,
    char ret_snapshot[HR_FLEET_SNAPSHOT_NAME], struct hr_e2b_template *ret, struct hr_err *err)
{
	HR_PUT struct json_object *list = NULL;
	const char *found = NULL, *own;
	int64_t newest = 0, created;
	char tag[HR_FLEET_TAG];
	bool exact = false;
	size_t i;

	if (c->api->fleet->engine->copies == NULL || hr_fleet_tag(c->key.id, name, tag, NULL) != 0)
		return 0;
	if (hr_fleet_snapshots(c->api->fleet, c->key.id, name, &list, err) != 0)
		return -1;
	/* boxes of several templates may have snapshots of this name */
	for (i = 0; i < hr_json_count(list) && !exact; i++) {
		own = hr_json_text_or(hr_json_entry(list, i), "name", "");
		created = hr_json_int_at(hr_json_entry(list, i), "created");
		exact = strcmp(own, name) == 0;
		if (exact || (created >= newest && is_called(c->api, own, name))) {
			found = own;
			newest = created;
		}
	}
	if (found == NULL)
		return 0;
	own = template_of(c->api, found);
	if (!hr_e2b_template(c->api, own != NULL ? own : "base", ret))
		return 0;
	(void)snprintf(ret_snapshot, HR_FLEET_SNAPSHOT_NAME, "%s", found);
	ret->name = ret_snapshot;
	return 1;
}

static void
put_snapshot(struct hr_buf *b, struct json_object *o)
{
	const char *name = hr_json_text_or(o, "name", "");

	hr_buf_addc(b, '{');
	hr_json_put_named(b, "snapshotID", name);
	hr_buf_adds(b, ",\"names\":[");
	(void)hr_json_put_str(b, name, strlen(name), HR_JSON_REPLACE);
	hr_buf_adds(b, "]}");
}

/* Writes the name of a new snapshot of a sandbox. Returns 0, or -1 after it has answered. */
static int
name_snapshot(const struct hr_fleet_call *c, const struct hr_fleet_row *row,
    char ret[2 * HR_FLEET_SNAPSHOT_NAME])
{
	HR_PUT struct json_object *request = NULL;
	const char *template = hr_json_text_or(hr_e2b_of(row, &request), "template", "base");
	const char *name = hr_json_text_at(c->body, "name"), *own;
	struct hr_e2b_template t;
	struct hr_err err = {0};
	char digits[DIGITS + 1];

	if (name == NULL && hr_random_hex(digits, DIGITS, &err) < 0)
		return hr_e2b_say(c->a, 503, "%s", err.msg);
	/* a sandbox from a snapshot has that one's name as its template */
	if (!hr_e2b_template(c->api, template, &t)) {
		own = template_of(c->api, template);
		template = own != NULL ? own : "base";
	}
	(void)snprintf(ret, 2 * HR_FLEET_SNAPSHOT_NAME, "%.*s.%.*s", HR_FLEET_SNAPSHOT_NAME,
	    name != NULL ? name : digits, (int)strcspn(template, ":"), template);
	return 0;
}

void
hr_e2b_snapshot(struct hr_fleet_call *c)
{
	struct json_object *memory = hr_json_at(c->body, "memory"),
			   *named = hr_json_at(c->body, "name");
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	HR_PUT struct json_object *o = NULL;
	char name[2 * HR_FLEET_SNAPSHOT_NAME];
	enum hr_fleet_result r;
	struct hr_err err = {0};

	if (!can(c, "no snapshots; pause the sandbox, and connect to it later"))
		return;
	if ((memory != NULL && hr_json_type(memory) != HR_PY_BOOL) ||
	    (named != NULL && hr_json_text(named) == NULL)) {
		(void)hr_e2b_say(c->a, 400, "name must be a string, and memory true or false");
		return;
	}
	/* most versions of the SDKs cannot send it, so the operator answers for them */
	if (memory == NULL ? !c->api->file_forks : hr_json_true_at(c->body, "memory")) {
		(void)hr_e2b_say(c->a, 501,
		    "this service has no snapshots of memory: pass \"memory\": false, in Python "
		    "mode=\"filesystem\", or ask its operator for --e2b-file-forks");
		return;
	}
	if (hr_e2b_find(c, &row) != 0 || name_snapshot(c, &row, name) != 0)
		return;
	hr_fleet_row_done(&row);
	/* a name that is taken is that of the new files, as in the original */
	r = hr_fleet_snapshot(c->api->fleet, &c->key,
	    &(struct hr_fleet_copy){.id = c->rest, .name = name, .replaces = true}, &row, &o, &err);
	if (r != HR_FLEET_OK) {
		refuse(c, r, &row, &err);
		return;
	}
	c->a->status = 201;
	put_snapshot(&c->a->body, o);
}

void
hr_e2b_list_snapshots(struct hr_fleet_call *c)
{
	HR_BUF(id, HR_E2B_QUERY_MAX);
	HR_BUF(named, HR_E2B_QUERY_MAX);
	HR_BUF(after, HR_E2B_QUERY_MAX);
	HR_PUT struct json_object *list = NULL;
	const char *of = hr_fleet_query(&id, c->query, "sandboxID"),
		   *called = hr_fleet_query(&named, c->query, "name"),
		   *token = hr_fleet_query(&after, c->query, "nextToken"), *name, *last = "";
	struct json_object *o;
	struct hr_err err = {0};
	size_t i, n = 0, limit;

	if (!can(c, "no snapshots; pause the sandbox, and connect to it later") ||
	    (limit = hr_e2b_read_limit(c)) == 0)
		return;
	if (hr_fleet_snapshots(c->api->fleet, c->key.id, "", &list, &err) != 0) {
		hr_fleet_refuse(c->a, HR_FLEET_BROKEN, NULL, &err);
		return;
	}
	c->a->status = 200;
	hr_buf_addc(&c->a->body, '[');
	for (i = 0; i < hr_json_count(list); i++) { /* names are in order */
		o = hr_json_entry(list, i);
		name = hr_json_text_or(o, "name", "");
		if (strcmp(name, token) <= 0 ||
		    (*of != '\0' && !hr_json_str_is(hr_json_at(o, "runtime_id"), of)) ||
		    (*called != '\0' && !is_called(c->api, name, called)))
			continue;
		if (n == limit) {
			hr_buf_addf(&c->a->head, "X-Next-Token: %s\r\n", last);
			break;
		}
		hr_buf_adds(&c->a->body, n++ > 0 ? "," : "");
		put_snapshot(&c->a->body, o);
		last = name;
	}
	hr_buf_addc(&c->a->body, ']');
}

void
hr_e2b_unsnapshot(struct hr_fleet_call *c)
{
	char name[HR_FLEET_SNAPSHOT_NAME];
	struct hr_e2b_template t;
	enum hr_fleet_result r = HR_FLEET_NOT_FOUND;
	struct hr_err err = {0};
	int found;

	if (!can(c, "no builds of templates; its operator names images with --e2b-template"))
		return;
	found = hr_e2b_snapshot_template(c, c->rest, name, &t, &err);
	if (found > 0)
		r = hr_fleet_unsnapshot(c->api->fleet, c->key.id, name, &err);
	if (found < 0)
		hr_fleet_refuse(c->a, HR_FLEET_BROKEN, NULL, &err);
	else if (r == HR_FLEET_NOT_FOUND)
		(void)hr_e2b_say(c->a, 404, "snapshot '%.200s' not found", c->rest);
	else if (r != HR_FLEET_OK)
		hr_fleet_refuse(c->a, r, NULL, &err);
	else
		c->a->status = 204;
}
