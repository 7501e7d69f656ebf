/* Implements the calls for branches and snapshots (doc/fleet.md, "Branches and snapshots"): for
 * sandboxes and snapshots of the key alone. */
#include "config.h"

#include "fleet/copies.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "base/strv.h"
#include "fleet/api/api_int.h"
#include "fleet/request.h"
#include "proto/json.h"

#define SUFFIX_MAX 4 /* "-100" */

/* Returns true, or false after it has answered that the engine copies nothing. */
static bool
can(struct hr_fleet_call *c)
{
	if (c->api->fleet->engine->copies != NULL)
		return true;
	(void)hr_fleet_say(c->a, 501,
	    "this service cannot copy the files of its sandboxes: branches and snapshots need a "
	    "service with the back-end box");
	return false;
}

/* Looks the sandbox up before all else: to other keys it is unknown. Returns false after it has
 * answered. */
static bool
is_own(struct hr_fleet_call *c, const char *id)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	struct hr_err err = {0};
	enum hr_fleet_result r = hr_fleet_get(c->api->fleet, c->key.id, id, &row, &err);

	if (r != HR_FLEET_OK)
		hr_fleet_refuse(c->a, r, &row, &err);
	return r == HR_FLEET_OK;
}

static void
put_answer(struct hr_fleet_call *c, const struct hr_fleet_row *rows, size_t n, const char *json)
{
	static const char *const members[] = {"still", "sessions", "not_copied"};
	HR_PUT struct json_object *o = NULL;
	struct hr_buf *b = &c->a->body;
	size_t i;

	if (hr_json_decode(json, strlen(json), &o, NULL) != 0)
		o = NULL;
	c->a->status = 200;
	hr_buf_adds(b, "{\"branches\":[");
	for (i = 0; i < n; i++) {
		hr_buf_adds(b, i > 0 ? "," : "");
		hr_fleet_put_object(b, c->api, c->q, &rows[i]);
		hr_buf_addc(b, '}');
	}
	hr_buf_addc(b, ']');
	for (i = 0; i < sizeof(members) / sizeof(*members); i++) {
		hr_buf_addf(b, ",\"%s\":", members[i]);
		hr_json_put_whole(b, hr_json_at(o, members[i]));
	}
	hr_buf_addc(b, '}');
}

/* Returns the error text for a body that names no fork, or NULL. */
static const char *
wrong(struct json_object *body)
{
	struct json_object *count = hr_json_at(body, "count"), *freeze = hr_json_at(body, "freeze");
	const char *why = hr_fleet_request_wrong(body);

	if (why != NULL)
		return why;
	if (hr_json_text_at(body, "runtime_id") == NULL)
		return "the body must be {\"runtime_id\": TEXT, \"session_id\": TEXT, \"count\"?: "
		       "NUMBER, \"freeze\"?: BOOLEAN}";
	if (count != NULL && (hr_json_type(count) != HR_PY_INT || hr_json_int(count) < 1 ||
				 hr_json_int(count) > HR_FLEET_FORK_MAX))
		return "count must be an integer from 1 to 100";
	if (count != NULL &&
	    strlen(hr_json_text_at(body, "session_id")) + SUFFIX_MAX >= HR_FLEET_SESSION)
		return "session_id: too long for several branches";
	if (freeze != NULL && hr_json_type(freeze) != HR_PY_BOOL)
		return "freeze must be true or false";
	return NULL;
}

void
hr_fleet_call_fork(struct hr_fleet_call *c)
{
	struct hr_fleet_row rows[HR_FLEET_FORK_MAX];
	HR_CLEAN(hr_strv_done) struct hr_strv sessions = {0};
	const char *why = wrong(c->body), *session = hr_json_text_at(c->body, "session_id");
	struct hr_fleet_fork how = {.id = hr_json_text_at(c->body, "runtime_id"),
	    .freeze = hr_json_true_at(c->body, "freeze")};
	int64_t count = hr_json_int_at(c->body, "count"), n;
	HR_FREE char *json = NULL;
	enum hr_fleet_result r;
	struct hr_err err = {0};
	size_t i;

	if (why != NULL) {
		(void)hr_fleet_say(c->a, 400, why);
		return;
	}
	if (!is_own(c, how.id) || !can(c))
		return;
	for (n = 1; n <= count; n++)
		hr_strv_addf(&sessions, "%s-%d", session, (int)n);
	if (count == 0)
		hr_strv_add(&sessions, session);
	if (sessions.failed) {
		(void)hr_fleet_say(c->a, 503, "out of memory");
		return;
	}
	how.sessions = hr_strv_list(&sessions);
	how.n = sessions.n;
	r = hr_fleet_fork(c->api->fleet, &c->key, &how, rows, &json, &err);
	if (r == HR_FLEET_OK)
		put_answer(c, rows, how.n, json);
	else
		hr_fleet_refuse(c->a, r, &rows[0], &err);
	for (i = 0; i < how.n; i++)
		hr_fleet_row_done(&rows[i]);
}

void
hr_fleet_call_snapshot(struct hr_fleet_call *c)
{
	const char *id = hr_json_text_at(c->body, "runtime_id");
	struct json_object *name = hr_json_at(c->body, "name");
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	HR_PUT struct json_object *o = NULL;
	enum hr_fleet_result r;
	struct hr_err err = {0};

	if (id == NULL || (name != NULL && hr_json_text(name) == NULL)) {
		(void)hr_fleet_say(
		    c->a, 400, "the body must be {\"runtime_id\": TEXT, \"name\"?: TEXT}");
		return;
	}
	if (!is_own(c, id) || !can(c))
		return;
	r = hr_fleet_snapshot(c->api->fleet, &c->key,
	    &(struct hr_fleet_copy){.id = id, .name = hr_json_text(name)}, &row, &o, &err);
	if (r != HR_FLEET_OK) {
		hr_fleet_refuse(c->a, r, &row, &err);
		return;
	}
	c->a->status = 200;
	hr_json_put_whole(&c->a->body, o);
}

/* Checks that the key may see the snapshots of others. Returns false after it has answered. */
static bool
may_see_others(struct hr_fleet_call *c)
{
	if ((c->key.scopes & HR_SCOPE_ADMIN) != 0)
		return true;
	(void)hr_fleet_say(c->a, 403, "snapshots of other keys are for keys of scope admin");
	return false;
}

/* Appends a page of the list: the snapshots after the one that `after` names by "KEY.NAME". */
static void
put_snapshots(struct hr_fleet_call *c, struct json_object *list, const char *after, long limit)
{
	struct hr_buf *b = &c->a->body;
	char tag[HR_FLEET_TAG], last[HR_FLEET_TAG] = "";
	struct json_object *o;
	long n = 0;
	size_t i;

	hr_buf_adds(b, "{\"snapshots\":[");
	for (i = 0; i < hr_json_count(list); i++) { /* the engine lists them in this order */
		o = hr_json_entry(list, i);
		(void)snprintf(tag, sizeof(tag), "%" PRId64 ".%s",
		    hr_json_at(o, "key") != NULL ? hr_json_int_at(o, "key") : c->key.id,
		    hr_json_text_or(o, "name", ""));
		if (strcmp(tag, after) <= 0)
			continue;
		if (n == limit)
			break;
		hr_buf_adds(b, n++ > 0 ? "," : "");
		hr_json_put_whole(b, o);
		memcpy(last, tag, sizeof(last));
	}
	hr_buf_addc(b, ']');
	if (i < hr_json_count(list))
		hr_json_put_named(b, "next", last);
	hr_buf_addc(b, '}');
}

void
hr_fleet_call_snapshots(struct hr_fleet_call *c)
{
	HR_PUT struct json_object *list = NULL;
	HR_BUF(keys, HR_FLEET_QUERY_MAX);
	HR_BUF(last, HR_FLEET_QUERY_MAX);
	struct hr_err err = {0};
	const char *whose = hr_fleet_query(&keys, c->query, "keys");
	const char *after = hr_fleet_query(&last, c->query, "after");
	bool all = *whose != '\0';
	long limit;

	if (!can(c) || (all && !may_see_others(c)))
		return;
	if (all && strcmp(whose, "all") != 0) {
		(void)hr_fleet_say(c->a, 400, "the query may be keys=all");
		return;
	}
	if (*after != '\0' && after[strspn(after, "0123456789")] != '.') {
		(void)hr_fleet_say(c->a, 400, "after is the value of next in an earlier answer");
		return;
	}
	limit = hr_fleet_query_limit(c);
	if (limit == 0)
		return;
	if (hr_fleet_snapshots(c->api->fleet, all ? 0 : c->key.id, "", &list, &err) != 0) {
		hr_fleet_refuse(c->a, HR_FLEET_BROKEN, NULL, &err);
		return;
	}
	c->a->status = 200;
	put_snapshots(c, list, after, limit);
}

void
hr_fleet_call_unsnapshot(struct hr_fleet_call *c)
{
	const char *name = hr_json_text_at(c->body, "name");
	struct json_object *of = hr_json_at(c->body, "key");
	int64_t key = of != NULL ? hr_json_int_at(c->body, "key") : c->key.id;
	enum hr_fleet_result r;
	struct hr_err err = {0};

	if (!can(c) || (key != c->key.id && !may_see_others(c)))
		return;
	if (name == NULL || key <= 0) {
		(void)hr_fleet_say(
		    c->a, 400, "the body must be {\"name\": TEXT, \"key\"?: NUMBER}");
		return;
	}
	r = hr_fleet_unsnapshot(c->api->fleet, key, name, &err);
	if (r == HR_FLEET_NOT_FOUND) {
		(void)hr_fleet_say(c->a, 404,
		    of == NULL ? "this key has no snapshot of that name"
			       : "that key has no snapshot of that name");
	} else if (r == HR_FLEET_OK) {
		c->a->status = 200;
		hr_buf_adds(&c->a->body, "{}");
	} else {
		hr_fleet_refuse(c->a, r, NULL, &err);
	}
}

bool
hr_fleet_call_from(struct hr_fleet_call *c)
{
	struct json_object *from = hr_json_at(c->body, "from");
	char tag[HR_FLEET_TAG];
	struct hr_err err = {0};
	int found;

	if (from == NULL)
		return true;
	if (!can(c))
		return false;
	if (hr_json_text(from) == NULL ||
	    hr_fleet_tag(c->key.id, hr_json_text(from), tag, &err) != 0) {
		(void)hr_fleet_say(c->a, 400, "from must be the name of a snapshot");
		return false;
	}
	found = hr_fleet_has_snapshot(c->api->fleet, c->key.id, hr_json_text(from), &err);
	if (found == 0)
		(void)hr_fleet_say(c->a, 404, "from: this key has no snapshot of that name");
	else if (found < 0 ||
		 hr_json_set(c->body, "from", json_object_new_string(tag), &err) != 0) {
		hr_fleet_refuse(c->a, HR_FLEET_BROKEN, NULL, &err);
		found = -1;
	}
	return found > 0;
}
