/* Answers the lists of the E2B API. The rows of a key are read at once, and composed without the
 * lock. */
#include "config.h"

#include "fleet/e2b/e2b.h"
#include "fleet/fleet_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "proto/json.h"

#define PAGE_MOST 100

struct rows {
	struct hr_fleet_row *v;
	size_t n, room, running;
	bool failed;
};

struct choice {
	bool running, paused, ascending;
	const char *metadata; /* the query's value, "": any */
	size_t metadata_len;
	const char *template; /* "": any */
	int64_t after;        /* seconds; -1: any */
	int64_t token_at;
	const char *token_id; /* "": from the first one */
	size_t limit;
};

static void
keep(void *arg, const struct hr_fleet_row *row)
{
	struct rows *r = arg;
	struct hr_fleet_row *v;

	if (r->failed || !hr_fleet_has_session(row->state))
		return;
	if (r->n == r->room) {
		v = reallocarray(r->v, r->room * 2 + 64, sizeof(*v));
		if (v == NULL) {
			r->failed = true;
			return;
		}
		r->v = v;
		r->room = r->room * 2 + 64;
	}
	r->v[r->n] = *row;
	r->v[r->n].request = strdup(row->request);
	r->failed = r->v[r->n].request == NULL;
	r->n += !r->failed;
}

/* Returns 1 if the key's clients know the sandbox, 0, or -1. They know one that starts only if it
 * is a branch: the service has answered their fork, and left before it ran. */
static int
is_known(struct hr_fleet *f, const struct hr_fleet_row *row, struct hr_err *err)
{
	HR_PUT struct json_object *request = NULL;

	if (row->state != HR_FLEET_STARTING)
		return 1;
	(void)hr_e2b_of(row, &request);
	return hr_json_at(request, "fork") != NULL ? hr_fleet_is_whole(f, row, err) : 0;
}

/* Removes the rows that no client knows. */
static int
drop_unknown(struct hr_fleet *f, struct rows *r, struct hr_err *err)
{
	size_t i, n = r->n;
	int known = 0;

	for (r->n = i = 0; i < n; i++) {
		if (known >= 0)
			known = is_known(f, &r->v[i], err);
		if (known > 0) {
			r->running += !hr_e2b_is_paused(&r->v[i]);
			r->v[r->n++] = r->v[i];
		} else {
			hr_fleet_row_done(&r->v[i]);
		}
	}
	return known >= 0 ? 0 : -1;
}

static bool
has_pair(void *arg, const char *key, const char *value)
{
	const char *own = hr_json_text_at(arg, key);

	return own != NULL && strcmp(own, value) == 0;
}

static bool
is_chosen(const struct choice *q, const struct hr_fleet_row *row)
{
	HR_PUT struct json_object *request = NULL;
	struct json_object *e2b;

	if (hr_e2b_is_paused(row) ? !q->paused : !q->running)
		return false;
	if (q->after >= 0 && row->created < q->after)
		return false;
	if (q->metadata_len == 0 && *q->template == '\0')
		return true;
	e2b = hr_e2b_of(row, &request);
	if (*q->template != '\0' &&
	    strcmp(hr_json_text_or(e2b, "template", "base"), q->template) != 0)
		return false;
	return hr_e2b_metadata(q->metadata, q->metadata_len, has_pair, hr_json_at(e2b, "metadata"));
}

/* Returns true if the row comes after the one that the token names, in the order of the list. */
static bool
follows(const struct choice *q, const struct hr_fleet_row *row)
{
	int order;

	if (*q->token_id == '\0')
		return true;
	order = row->created != q->token_at ? (row->created > q->token_at ? 1 : -1)
					    : strcmp(row->id, q->token_id);
	return q->ascending ? order > 0 : order < 0;
}

static void
put_rows(struct hr_fleet_call *c, const struct choice *q, const struct rows *r)
{
	struct hr_buf *b = &c->a->body;
	const struct hr_fleet_row *row, *last = NULL;
	size_t i, put = 0;

	hr_buf_addc(b, '[');
	for (i = 0; i < r->n; i++) {
		row = &r->v[q->ascending ? i : r->n - 1 - i];
		if (!follows(q, row) || !is_chosen(q, row))
			continue;
		if (put == q->limit) {
			hr_buf_addf(&c->a->head, "X-Next-Token: %" PRId64 "-%s\r\n", last->created,
			    last->id);
			break;
		}
		if (put++ > 0)
			hr_buf_addc(b, ',');
		hr_e2b_put_listed(b, c, row, false);
		last = row;
	}
	hr_buf_addc(b, ']');
	hr_buf_addf(&c->a->head, "X-Total-Running: %zu\r\n", r->running);
	c->a->status = 200;
}

static void
list(struct hr_fleet_call *c, const struct choice *q)
{
	struct hr_fleet *f = c->api->fleet;
	struct rows r = {.n = 0};
	struct hr_fleet_place turn;
	struct hr_err err = {0};
	int result;

	if (!hr_fleet_call_turn(c, &turn))
		return;
	(void)pthread_mutex_lock(&f->lock);
	result = f->store->ops->each(f->store, c->key.id, true, keep, &r, &err);
	if (result == 0)
		result = drop_unknown(f, &r, &err);
	(void)pthread_mutex_unlock(&f->lock);
	if (result != 0)
		hr_fleet_refuse(c->a, HR_FLEET_BROKEN, NULL, &err);
	else if (r.failed)
		(void)hr_e2b_say(c->a, 503, "out of memory");
	else
		put_rows(c, q, &r);
	hr_fleet_turn_give(f, &turn);
	while (r.n > 0)
		hr_fleet_row_done(&r.v[--r.n]);
	free(r.v);
}

size_t
hr_e2b_read_limit(const struct hr_fleet_call *c)
{
	HR_BUF(b, HR_E2B_QUERY_MAX);
	const char *text = hr_fleet_query(&b, c->query, "limit");
	size_t n = *text != '\0' ? strtoul(text, NULL, 10) : PAGE_MOST;

	if (text[strspn(text, "0123456789")] != '\0' || n < 1 || n > PAGE_MOST) {
		(void)hr_e2b_say(c->a, 400, "limit must be between 1 and 100");
		return 0;
	}
	return n;
}

static bool
any_pair(void *arg, const char *key, const char *value)
{
	(void)arg;
	(void)value;
	return *key != '\0';
}

/* Finds the value of "metadata" as it was sent: its parts are decoded one by one. Returns 0, or -1
 * after it has answered: a filter that is not understood must not be left out. */
static int
read_metadata(struct hr_fleet_call *c, struct choice *q)
{
	const char *p = c->query;
	size_t n;

	q->metadata = "";
	for (; *p != '\0'; p += n + (p[n] != '\0')) {
		n = strcspn(p, "&");
		if (n >= 9 && strncmp(p, "metadata=", 9) == 0) {
			q->metadata = p + 9;
			q->metadata_len = n - 9;
		}
	}
	return hr_e2b_metadata(q->metadata, q->metadata_len, any_pair, NULL)
		   ? 0
		   : hr_e2b_say(c->a, 400, "metadata must be a form of keys and values");
}

static int
read_state(struct hr_fleet_call *c, struct choice *q)
{
	HR_BUF(value, HR_E2B_QUERY_MAX);
	const char *query = c->query, *p;
	bool any = false;
	size_t n;

	while (hr_fleet_query_next(&value, &query, "state"))
		for (p = hr_buf_str(&value); *p != '\0'; p += n + (p[n] != '\0')) {
			n = strcspn(p, ",");
			if (n == 7 && strncmp(p, "running", n) == 0)
				q->running = true;
			else if (n == 6 && strncmp(p, "paused", n) == 0)
				q->paused = true;
			else
				return hr_e2b_say(
				    c->a, 400, "state must be running, paused or both");
			any = true;
		}
	if (!any)
		q->running = q->paused = true;
	return 0;
}

/* Reads the position "CREATED-ID". Returns false for another text. */
static bool
read_token(const char *text, struct choice *q)
{
	char *end;

	q->token_id = "";
	if (*text == '\0')
		return true;
	q->token_at = strtoll(text, &end, 10);
	if (end == text || *end != '-' || strlen(end + 1) != HR_FLEET_ID - 1)
		return false;
	q->token_id = end + 1;
	return true;
}

void
hr_e2b_list_v2(struct hr_fleet_call *c)
{
	HR_BUF(order, HR_E2B_QUERY_MAX);
	HR_BUF(after, HR_E2B_QUERY_MAX);
	HR_BUF(template, HR_E2B_QUERY_MAX);
	HR_BUF(token, HR_E2B_QUERY_MAX);
	struct choice q = {.after = -1, .limit = hr_e2b_read_limit(c)};
	const char *text;

	if (q.limit == 0)
		return;
	q.template = hr_fleet_query(&template, c->query, "template");
	text = hr_fleet_query(&order, c->query, "order");
	q.ascending = strcmp(text, "asc") == 0;
	if (*text != '\0' && !q.ascending && strcmp(text, "desc") != 0) {
		(void)hr_e2b_say(c->a, 400, "order must be asc or desc");
		return;
	}
	text = hr_fleet_query(&after, c->query, "startedAfter");
	if (*text != '\0' && (q.after = hr_e2b_time(text)) < 0) {
		(void)hr_e2b_say(c->a, 400, "startedAfter must be a time of RFC 3339");
		return;
	}
	if (!read_token(hr_fleet_query(&token, c->query, "nextToken"), &q)) {
		(void)hr_e2b_say(c->a, 400, "nextToken must be the X-Next-Token of a page");
		return;
	}
	if (read_metadata(c, &q) == 0 && read_state(c, &q) == 0)
		list(c, &q);
}

void
hr_e2b_list_v1(struct hr_fleet_call *c)
{
	struct choice q = {
	    .running = true, .after = -1, .template = "", .token_id = "", .limit = SIZE_MAX};

	if (read_metadata(c, &q) == 0)
		list(c, &q);
}
