/* Returns commands and their output as events, one page per request. */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/clock.h"
#include "worker/v1/command.h"

#define PIECE ((uint64_t)1 << 20) /* maximum bytes of output per event */
#define ROOM (8 * PIECE)          /* bytes of output per answer */
#define LIST_MAX (64u << 20)
#define IDS_MAX 1000 /* events per batch */

/* Returns the number of whole pieces before the last one. */
static uint64_t
pieces(uint64_t size)
{
	return size > 0 ? (size - 1) / PIECE : 0;
}

uint64_t
hr_v1_outputs(const struct hr_rex_call *c, const char *id)
{
	HR_CLEAN(hr_v1_streams_close) struct hr_v1_streams s = {.out = -1, .err = -1};

	hr_v1_streams_open(c, id, &s);
	return pieces(s.out_size) + pieces(s.err_size) + 1;
}

/* ---- the events of a command ---- */

struct listed {
	struct hr_v1_command m;
	struct hr_v1_streams s;
	int64_t started, last, code; /* last: the time of its output */
	bool over;
};

static void
list_command(const struct hr_rex_call *c, const struct hr_v1_command *m,
    const struct hr_v1_state *state, struct listed *ret)
{
	ret->m = *m;
	ret->started = state->started_us / 1000;
	ret->last = state->over ? state->ended_us / 1000 : hr_wall_ms();
	ret->code = state->code;
	ret->over = state->over;
	hr_v1_streams_open(c, m->id, &ret->s);
}

static int64_t
outputs_of(const struct listed *l)
{
	return (int64_t)(pieces(l->s.out_size) + (l->over ? pieces(l->s.err_size) + 1 : 0));
}

int64_t
hr_v1_outputs_now(
    const struct hr_rex_call *c, const struct hr_v1_command *m, const struct hr_v1_state *state)
{
	struct listed l;
	int64_t n;

	list_command(c, m, state, &l);
	n = outputs_of(&l);
	hr_v1_streams_close(&l.s);
	return n;
}

/* Orders the events: whole pieces of stdout, then of stderr, then the rest of both with the exit
 * code. While the command runs only the first group exists. */
static struct hr_v1_event
event_at(const struct listed *l, uint64_t order)
{
	uint64_t out = pieces(l->s.out_size), err = l->over ? pieces(l->s.err_size) : 0;
	struct hr_v1_event e = {.order = order};

	if (order < out) {
		e.out_from = order * PIECE;
		e.out_to = e.out_from + PIECE;
	} else if (order < out + err) {
		e.err_from = (order - out) * PIECE;
		e.err_to = e.err_from + PIECE;
	} else {
		e.out_from = out * PIECE;
		e.out_to = l->s.out_size;
		e.err_from = err * PIECE;
		e.err_to = l->s.err_size;
		e.code = &l->code;
	}
	return e;
}

/* Appends the event; order -1 is the command itself. Returns its bytes of output. */
static uint64_t
put_event(struct hr_rex_call *c, const struct listed *l, int64_t order)
{
	struct hr_v1_event e;

	if (order < 0) {
		hr_v1_put_command(&c->ret->body, c, &l->m, l->started);
		return 0;
	}
	e = event_at(l, (uint64_t)order);
	hr_v1_put_event(&c->ret->body, &l->m, &l->s, &e, l->last);
	return e.out_to - e.out_from + e.err_to - e.err_from;
}

/* Parses the id of an event, which is that of its command but for the last four digits. */
static bool
parse_event(struct hr_span s, struct hr_v1_command *m, int64_t *ret_order)
{
	char id[HR_V1_ID], *end;

	if (s.len < 4 || s.len >= HR_V1_ID || memchr(s.p, '\0', s.len) != NULL)
		return false;
	memcpy(id, s.p, s.len);
	id[s.len] = '\0';
	*ret_order = strtoll(id + s.len - 4, &end, 16) - 1;
	memcpy(id + s.len - 4, "0000", 4);
	return end == id + s.len && *ret_order >= -1 &&
	       hr_v1_parse_id(m, (struct hr_span){id, s.len});
}

/* Appends the event with that id. Returns 1, 0 if there is none, or -1 if its files
 * cannot be read. */
static int
put_found(struct hr_rex_call *c, struct hr_span id)
{
	struct listed l = {.s = {.out = -1, .err = -1}};
	struct hr_v1_state state;
	struct hr_v1_command m;
	int64_t order;
	int found = parse_event(id, &m, &order) ? hr_v1_look(c, m.id, &state) : 0;

	if (found <= 0)
		return found;
	list_command(c, &m, &state, &l);
	found = order < outputs_of(&l);
	if (found)
		(void)put_event(c, &l, order);
	hr_v1_streams_close(&l.s);
	return found;
}

bool
hr_v1_is_output(struct hr_rex_call *c, struct hr_span id)
{
	bool found = put_found(c, id) > 0;

	hr_buf_reset(&c->ret->body);
	return found;
}

static void
refuse_later(struct hr_rex_call *c)
{
	hr_answer_later(c->ret, "the command's files cannot be read now");
}

void
hr_v1_get_event(struct hr_rex_call *c, struct hr_span id)
{
	int found = put_found(c, id);

	if (found < 0)
		refuse_later(c);
	else if (found == 0)
		hr_answer_detail(c->ret, 404, "Not Found");
}

void
hr_v1_get_events(struct hr_rex_call *c)
{
	struct hr_buf *b = &c->ret->body;
	size_t i, n;

	if (!hr_rex_take_list(c))
		return;
	n = hr_json_count(c->body);
	if (n > IDS_MAX) {
		hr_answer_detail(c->ret, 422, "the body must be a list of at most 1000 ids");
		return;
	}
	hr_buf_addc(b, '[');
	for (i = 0; i < n; i++) {
		struct hr_span id;

		id.p = hr_json_str(hr_json_entry(c->body, i), &id.len);
		hr_buf_adds(b, i > 0 ? "," : "");
		if (put_found(c, id) <= 0)
			hr_buf_adds(b, "null");
	}
	hr_buf_addc(b, ']');
}

/* ---- search ---- */

struct wanted {
	struct hr_v1_command of, page; /* `of`: only its output; ids "": none */
	bool commands, outputs, down;
	long long after, limit;
	int64_t from, before; /* microseconds since 1970 */
	int64_t page_order;
};

struct event {
	size_t at; /* index of the command */
	int64_t ms, order;
};

struct found {
	struct hr_buf commands, events; /* arrays of struct listed and struct event */
};

static void
found_done(struct found *f)
{
	struct listed *l = (struct listed *)(void *)f->commands.p;
	size_t i;

	for (i = 0; i < f->commands.len / sizeof(*l); i++)
		hr_v1_streams_close(&l[i].s);
	hr_buf_done(&f->commands);
	hr_buf_done(&f->events);
}

static void
add_event(struct found *f, const struct wanted *w, size_t at, int64_t ms, int64_t order)
{
	struct event e = {at, ms, order};

	if (ms >= w->from / 1000 + (w->from % 1000 > 0) && ms * 1000 < w->before)
		hr_buf_add(&f->events, &e, sizeof(e));
}

static void
add_command(struct hr_rex_call *c, struct found *f, const struct wanted *w,
    const struct hr_v1_command *m, const struct hr_v1_state *state)
{
	struct listed l;
	size_t at = f->commands.len / sizeof(l);
	int64_t order, n;

	list_command(c, m, state, &l);
	hr_buf_add(&f->commands, &l, sizeof(l));
	if (f->commands.fail != HR_OK) {
		hr_v1_streams_close(&l.s);
		return;
	}
	if (w->commands && w->of.id[0] == '\0')
		add_event(f, w, at, l.started, -1);
	n = w->outputs ? outputs_of(&l) : 0;
	for (order = w->after + 1; order < n; order++)
		add_event(f, w, at, l.last, order);
}

static int
compare(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->ms != y->ms)
		return x->ms < y->ms ? -1 : 1;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

static int
compare_down(const void *a, const void *b)
{
	return compare(b, a);
}

static void
add_all(struct hr_rex_call *c, struct found *f, const struct wanted *w)
{
	HR_BUF(list, LIST_MAX);
	size_t n = hr_v1_list(c, &list);
	const struct hr_v1_entry *e = (const struct hr_v1_entry *)(const void *)list.p;

	for (; n > 0; n--, e++)
		add_command(c, f, w, &e->m, &e->state);
}

/* Returns the events in order, and their number. */
static const struct event *
sort(const struct found *f, bool down, size_t *ret_n)
{
	struct event *e = (struct event *)(void *)f->events.p;

	*ret_n = f->events.len / sizeof(*e);
	if (*ret_n > 0)
		qsort(e, *ret_n, sizeof(*e), down ? compare_down : compare);
	return e;
}

void
hr_v1_each_event(struct hr_rex_call *c, hr_v1_each_fn *fn, void *arg)
{
	const struct wanted w = {
	    .commands = true, .outputs = true, .after = -1, .from = INT64_MIN, .before = INT64_MAX};
	HR_CLEAN(found_done) struct found f = {.commands.cap = LIST_MAX, .events.cap = LIST_MAX};
	const struct listed *l;
	const struct event *e;
	size_t n;

	add_all(c, &f, &w);
	l = (const struct listed *)(const void *)f.commands.p;
	for (e = sort(&f, false, &n); n > 0; n--, e++)
		fn(arg, &l[e->at].m, e->order);
}

static void
put_page(struct hr_rex_call *c, const struct found *f, const struct wanted *w)
{
	const struct listed *l = (const struct listed *)(const void *)f->commands.p;
	size_t n, i = 0, first;
	const struct event *e = sort(f, w->down, &n);
	struct hr_buf *b = &c->ret->body;
	uint64_t bytes = 0;

	while (w->page.id[0] != '\0' && i < n &&
	       (e[i].order != w->page_order || strcmp(l[e[i].at].m.id, w->page.id) != 0))
		i++;
	i = i < n ? i : 0;
	hr_buf_adds(b, "{\"items\":[");
	for (first = i; i < n && i - first < (size_t)w->limit && bytes < ROOM; i++) {
		hr_buf_adds(b, i > first ? "," : "");
		bytes += put_event(c, &l[e[i].at], e[i].order);
	}
	hr_buf_adds(b, "],\"next_page_id\":");
	if (i < n)
		hr_v1_put_id(b, &l[e[i].at].m, (uint64_t)e[i].order);
	else
		hr_buf_adds(b, "null");
	hr_buf_addc(b, '}');
	if (f->commands.fail != HR_OK || f->events.fail != HR_OK)
		b->fail = HR_E_NOMEM;
}

/* Parses the ids of the query. A page that is unknown is the first one, as in the original. Returns
 * false after adding an error. */
static bool
read_ids(struct hr_rex_call *c, struct wanted *w, bool *ret_unknown)
{
	HR_BUF(of, HR_V1_TEXT_MAX);
	HR_BUF(page, HR_V1_TEXT_MAX);
	struct hr_v1_input in = {"query", "command_id__eq", {NULL, 0}};

	*ret_unknown = false;
	if (hr_request_query(c->r, "page_id", &page) &&
	    !parse_event(hr_span_of_buf(&page), &w->page, &w->page_order))
		w->page.id[0] = '\0';
	if (!hr_request_query(c->r, in.name, &of))
		return true;
	in.text = (struct hr_span){hr_buf_str(&of), of.len};
	if (!hr_v1_uuid(c, &in, &in.text))
		return false;
	/* handrail's ids end with four zeros; another UUID is that of no command */
	*ret_unknown = !hr_v1_parse_id(&w->of, in.text);
	return true;
}

/* Parses the query. Returns false after sending the errors. */
static bool
read_query(struct hr_rex_call *c, struct wanted *w, bool *ret_unknown)
{
	static const char *const kinds[] = {"BashCommand", "BashOutput", NULL};
	static const char *const orders[] = {"TIMESTAMP", "TIMESTAMP_DESC", NULL};
	size_t kind = 2, order = 0;
	bool fine;

	/* the original lists the errors in this order */
	fine = hr_v1_one_of(c, "kind__eq", "literal_error", kinds, &kind);
	fine &= read_ids(c, w, ret_unknown);
	fine &= hr_v1_time(c, "timestamp__gte", &w->from);
	fine &= hr_v1_time(c, "timestamp__lt", &w->before);
	fine &= hr_v1_number(c, "order__gt", &w->after);
	fine &= hr_v1_one_of(c, "sort_order", "enum", orders, &order);
	fine &= hr_v1_limit(c, true, 100, &w->limit);
	w->commands = kind != 1;
	w->outputs = kind != 0;
	w->down = order == 1;
	w->after = w->after < -1 ? -1 : w->after == LLONG_MAX ? LLONG_MAX - 1 : w->after;
	return fine;
}

void
hr_v1_search(struct hr_rex_call *c)
{
	struct wanted w = {.after = -1, .limit = 100, .from = INT64_MIN, .before = INT64_MAX};
	HR_CLEAN(found_done) struct found f = {.commands.cap = LIST_MAX, .events.cap = LIST_MAX};
	struct hr_v1_state state;
	bool unknown;
	int found = 0;

	if (!read_query(c, &w, &unknown))
		return;
	if (w.of.id[0] == '\0')
		add_all(c, &f, &w);
	else if (!unknown)
		found = hr_v1_look(c, w.of.id, &state);
	if (found > 0)
		add_command(c, &f, &w, &w.of, &state);
	if (found < 0)
		refuse_later(c);
	else
		put_page(c, &f, &w);
}
