/* Answers GET /list, a page of a key's sandboxes, and /sessions/batch. A page is built in parts,
 * and the answer is composed without the lock. */
#include "config.h"

#include "fleet/api/api_int.h"
#include "fleet/fleet_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/json.h"

#define PART 100
#define BATCH_MOST 100
#define POSITION (HR_FLEET_ID + 24)

struct part {
	struct hr_fleet_row rows[PART];
	size_t n;
	/* position of the last row before this part, in a store without pages */
	int64_t created;
	char id[HR_FLEET_ID]; /* "": this is the first part */
};

static void
keep(void *arg, const struct hr_fleet_row *row)
{
	struct part *p = arg;

	if (p->id[0] != '\0' && (row->created < p->created ||
				    (row->created == p->created && strcmp(row->id, p->id) <= 0)))
		return;
	if (p->n < PART) {
		p->rows[p->n] = *row;
		/* the string is borrowed from the store, and not shown */
		p->rows[p->n++].request = NULL;
	}
}

/* Writes a row's position in a list; without pages, it stays valid after the row is deleted. */
static void
put_position(const struct hr_fleet *f, const struct hr_fleet_row *row, char ret[POSITION])
{
	if (f->store->ops->page != NULL)
		(void)snprintf(ret, POSITION, "%s", row->id);
	else
		(void)snprintf(ret, POSITION, "%" PRId64 "-%s", row->created, row->id);
}

/* Reads such a position, or the id of one of the key's sandboxes. */
static int
read_position(const struct hr_fleet_call *c, const char *after, struct part *p, struct hr_err *err)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	const struct hr_store *s = c->api->fleet->store;
	char *end;
	int found;

	p->created = strtoll(after, &end, 10);
	if (end != after && *end == '-' && strlen(end + 1) == HR_FLEET_ID - 1) {
		(void)snprintf(p->id, sizeof(p->id), "%s", end + 1);
		return 0;
	}
	found = s->ops->find(c->api->fleet->store, after, &row, err);
	if (found < 0)
		return -1;
	if (found == 0 || row.key != c->key.id)
		return hr_err_set(err, HR_E_INVAL, "after is the \"next\" of a page");
	p->created = row.created;
	(void)snprintf(p->id, sizeof(p->id), "%s", row.id);
	return 0;
}

/* Reads the rows after `after` ("": from the first one). */
static int
read_part(
    const struct hr_fleet_call *c, bool live, const char *after, struct part *p, struct hr_err *err)
{
	struct hr_fleet *f = c->api->fleet;
	const struct hr_store_ops *ops = f->store->ops;
	int r = 0;

	p->n = 0;
	p->id[0] = '\0';
	(void)pthread_mutex_lock(&f->lock);
	if (ops->page != NULL) {
		r = ops->page(f->store, c->key.id, live, after, PART, keep, p, err);
	} else {
		if (*after != '\0')
			r = read_position(c, after, p, err);
		if (r == 0)
			r = ops->each(f->store, c->key.id, live, keep, p, err);
	}
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}

struct choice {
	struct hr_buf *status; /* state to match; "": any */
	bool live;
	long left; /* number of rows left in the page */
};

static bool
is_chosen(const struct choice *q, const struct hr_fleet_row *row)
{
	const char *status = hr_buf_str(q->status);

	return *status == '\0' || strcmp(status, hr_fleet_status(row->state)) == 0 ||
	       strcmp(status, hr_fleet_state_name(row->state)) == 0;
}

/* Appends the matching rows. *ret_last is the last row examined. */
static void
put_part(const struct hr_fleet_call *c, struct choice *q, const struct part *p, char *ret_last)
{
	struct hr_buf *b = &c->a->body;
	size_t i;

	for (i = 0; i < p->n && q->left > 0; i++) {
		put_position(c->api->fleet, &p->rows[i], ret_last);
		if (!is_chosen(q, &p->rows[i]))
			continue;
		hr_json_put_comma(b);
		hr_fleet_put_object(b, c->api, c->q, &p->rows[i]);
		hr_buf_addc(b, '}');
		q->left--;
	}
}

static int
put_page(const struct hr_fleet_call *c, struct choice *q, const char *after, struct hr_err *err)
{
	HR_FREE struct part *p = malloc(sizeof(*p));
	char last[POSITION], end[POSITION];
	bool more = false;
	int r;

	if (p == NULL)
		return hr_err_nomem(err);
	(void)snprintf(last, sizeof(last), "%s", after);
	do {
		r = read_part(c, q->live, last, p, err);
		if (r == 0)
			put_part(c, q, p, last);
	} while (r == 0 && q->left > 0 && p->n == PART);
	if (r == 0 && q->left == 0) {
		put_position(c->api->fleet, &p->rows[p->n - 1], end);
		more = strcmp(last, end) != 0;
		if (!more)
			r = read_part(c, q->live, last, p, err);
		more |= r == 0 && p->n > 0;
	}
	hr_buf_addc(&c->a->body, ']');
	if (more)
		hr_json_put_named(&c->a->body, "next", last);
	hr_buf_addc(&c->a->body, '}');
	return r;
}

void
hr_fleet_call_list(struct hr_fleet_call *c)
{
	struct hr_fleet *f = c->api->fleet;
	struct hr_fleet_place turn;
	struct hr_err err = {0};
	HR_BUF(status, HR_FLEET_QUERY_MAX);
	HR_BUF(after, HR_FLEET_QUERY_MAX);
	struct choice q = {.status = &status, .live = !hr_fleet_query_says(c, "all", "true")};
	const char *last = hr_fleet_query(&after, c->query, "after");

	(void)hr_fleet_query(&status, c->query, "status");
	q.left = hr_fleet_query_limit(c);
	if (q.left == 0)
		return;
	if (!hr_fleet_call_turn(c, &turn))
		return;
	c->a->status = 200;
	hr_buf_adds(&c->a->body, "{\"runtimes\":[");
	if (put_page(c, &q, strlen(last) < POSITION ? last : "-", &err) == 0)
		;
	else if (err.code == HR_E_INVAL)
		(void)hr_fleet_say(c->a, 400, err.msg);
	else
		hr_fleet_refuse(c->a, HR_FLEET_BROKEN, NULL, &err);
	hr_fleet_turn_give(f, &turn);
}

static bool
are_too_many(const char *query)
{
	HR_BUF(session, HR_FLEET_QUERY_MAX);
	unsigned n = 0;

	while (n <= BATCH_MOST && hr_fleet_query_next(&session, &query, "ids"))
		n++;
	return n > BATCH_MOST;
}

/* Answers the sandboxes of several sessions, as a list; sessions without one are left out. */
void
hr_fleet_call_batch(struct hr_fleet_call *c)
{
	struct hr_fleet *f = c->api->fleet;
	const char *query = c->query;
	struct hr_fleet_place turn;
	struct hr_err err = {0};
	HR_BUF(session, HR_FLEET_QUERY_MAX);
	bool any = false;
	int found = 0;

	if (are_too_many(query)) {
		(void)hr_fleet_say(c->a, 400, "ask for at most 100 ids at once");
		return;
	}
	if (!hr_fleet_call_turn(c, &turn))
		return;
	c->a->status = 200;
	hr_buf_addc(&c->a->body, '[');
	while (found >= 0 && hr_fleet_query_next(&session, &query, "ids")) {
		HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};

		any = true;
		(void)pthread_mutex_lock(&f->lock);
		found = f->store->ops->find_session(
		    f->store, c->key.id, hr_buf_str(&session), true, &row, &err);
		(void)pthread_mutex_unlock(&f->lock);
		if (found != 1)
			continue;
		hr_json_put_comma(&c->a->body);
		hr_fleet_put_object(&c->a->body, c->api, c->q, &row);
		hr_buf_addc(&c->a->body, '}');
	}
	hr_fleet_turn_give(f, &turn);
	hr_buf_addc(&c->a->body, ']');
	if (found < 0)
		hr_fleet_refuse(c->a, HR_FLEET_BROKEN, NULL, &err);
	if (any)
		return;
	/* "batch" may also be a session's name */
	hr_buf_reset(&c->a->body);
	c->rest = "batch";
	hr_fleet_call_session(c);
}
