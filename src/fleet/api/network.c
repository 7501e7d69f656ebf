/* Implements the calls for the rules of a sandbox's network (doc/fleet.md, "Rules of a network"):
 * for a sandbox of the key, or any of an operator's. */
#include "config.h"

#include "fleet/network.h"

#include <string.h>

#include "fleet/api/api_int.h"
#include "fleet/fleet_int.h"
#include "proto/json.h"

static void
answer(struct hr_fleet_call *c, const struct hr_fleet_row *row)
{
	HR_PUT struct json_object *rules = hr_fleet_network_of(row);

	c->a->status = 200;
	hr_buf_addc(&c->a->body, '{');
	hr_json_put_named(&c->a->body, "runtime_id", row->id);
	hr_buf_adds(&c->a->body, ",\"network\":");
	hr_json_put_whole(&c->a->body, rules);
	hr_buf_addc(&c->a->body, '}');
}

/* Finds the sandbox that the query names. Returns true, or false after it has answered. */
static bool
find(struct hr_fleet_call *c, struct hr_fleet_row *row)
{
	const int64_t key = (c->key.scopes & HR_SCOPE_ADMIN) != 0 ? 0 : c->key.id;
	struct hr_err err = {0};
	HR_BUF(id, HR_FLEET_QUERY_MAX);
	enum hr_fleet_result r = hr_fleet_get(
	    c->api->fleet, key, hr_fleet_query(&id, c->query, "runtime_id"), row, &err);

	if (r != HR_FLEET_OK)
		hr_fleet_refuse(c->a, r, row, &err);
	return r == HR_FLEET_OK;
}

void
hr_fleet_call_network(struct hr_fleet_call *c)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};

	if (find(c, &row))
		answer(c, &row);
}

void
hr_fleet_call_set_network(struct hr_fleet_call *c)
{
	const char *id = hr_json_text_at(c->body, "runtime_id");
	const struct hr_fleet_network_change change = {.network = hr_json_at(c->body, "network"),
	    .allow = hr_json_at(c->body, "allow"),
	    .deny = hr_json_at(c->body, "deny")};
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	enum hr_fleet_result r;
	struct hr_err err = {0};

	if (id == NULL ||
	    (change.network != NULL) == (change.allow != NULL || change.deny != NULL)) {
		(void)hr_fleet_say(c->a, 400,
		    "the body must be {\"runtime_id\": TEXT}, with \"network\", or with \"allow\" "
		    "and \"deny\"");
		return;
	}
	r = hr_fleet_network_edit(c->api->fleet,
	    (c->key.scopes & HR_SCOPE_ADMIN) != 0 ? 0 : c->key.id, id, &change, &row, &err);
	if (r == HR_FLEET_OK)
		answer(c, &row);
	else
		hr_fleet_refuse(c->a, r, &row, &err);
}

/* Appends the events of the lines; the engine's answer is checked again. */
static void
put_events(struct hr_buf *b, char *text)
{
	char *at, *rest = text;

	hr_buf_adds(b, "{\"events\":[");
	while ((at = strsep(&rest, "\n")) != NULL) {
		HR_PUT struct json_object *o = NULL;

		if (*at == '\0' || hr_json_decode_foreign(at, strlen(at), &o, NULL) != 0)
			continue;
		hr_json_put_comma(b);
		hr_json_put_whole(b, o);
	}
	hr_buf_adds(b, "]}");
}

void
hr_fleet_call_network_log(struct hr_fleet_call *c)
{
	struct hr_fleet *f = c->api->fleet;
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	HR_PUT struct json_object *rules = NULL;
	HR_FREE char *text = NULL;
	struct hr_fleet_place place;
	struct hr_err err = {0};
	int r;

	if (!find(c, &row))
		return;
	rules = hr_fleet_network_of(&row);
	if (rules == NULL || f->engine->network_log == NULL) {
		(void)hr_fleet_say(c->a, 501, "the network of this sandbox has no rules");
	} else if (row.state != HR_FLEET_RUNNING && row.state != HR_FLEET_PAUSED) {
		hr_fleet_refuse(c->a, HR_FLEET_CONFLICT, &row, &err);
	} else if (!hr_fleet_call_enter(c, &place)) {
		hr_fleet_refuse_crowd(c->a);
	} else {
		r = f->engine->network_log(f->engine_self, row.id, &text, &err);
		hr_fleet_call_leave(f, &place);
		if (r != 0) {
			hr_fleet_refuse(c->a, HR_FLEET_BROKEN, &row, &err);
			return;
		}
		c->a->status = 200;
		put_events(&c->a->body, text);
	}
}
