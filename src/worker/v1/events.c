/* Returns the output of V1 commands as events, one page per request. */
#include "config.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "worker/v1/command.h"

#define PIECE ((uint64_t)1 << 20) /* maximum bytes of output per event */
#define PAGE 8                    /* maximum events per answer */

/* Returns the number of whole pieces before the last one. */
static uint64_t
pieces(uint64_t size)
{
	return size > 0 ? (size - 1) / PIECE : 0;
}

uint64_t
hr_v1_outputs(const struct hr_rex_call *c, const char *name)
{
	HR_CLEAN(hr_v1_streams_close) struct hr_v1_streams s = {.out = -1, .err = -1};

	hr_v1_streams_open(c, name, &s);
	return pieces(s.out_size) + pieces(s.err_size) + 1;
}

/* Orders the events: whole pieces of stdout, then of stderr, then the rest of both with the exit
 * code. While the command runs only the first group exists. */
static struct hr_v1_event
event_at(const struct hr_v1_streams *s, uint64_t order, bool over, const int64_t *code)
{
	uint64_t out = pieces(s->out_size), err = over ? pieces(s->err_size) : 0;
	struct hr_v1_event e = {.order = order};

	if (order < out) {
		e.out_from = order * PIECE;
		e.out_to = e.out_from + PIECE;
	} else if (order < out + err) {
		e.err_from = (order - out) * PIECE;
		e.err_to = e.err_from + PIECE;
	} else {
		e.out_from = out * PIECE;
		e.out_to = s->out_size;
		e.err_from = err * PIECE;
		e.err_to = s->err_size;
		e.code = code;
	}
	return e;
}

/* Finds the newest command, the default of a query. */
static void
newest(struct hr_rex_call *c, struct hr_v1_command *m)
{
	struct hr_command_state s;
	HR_CLEAN(hr_v1_walk_done) struct hr_v1_walk w;
	int64_t best = -1;

	m->name[0] = '\0';
	hr_v1_walk_init(&w, c);
	while (hr_v1_walk_next(&w, &s) != NULL)
		if (s.started > best && hr_v1_parse_id(m, s.key))
			best = s.started;
}

/* Parses a page id. Returns false if the page is not of m's command (m->name "": of any
 * command). */
static bool
parse_page(struct hr_v1_command *m, struct hr_span page, long long *ret_order)
{
	struct hr_v1_command of;
	char id[HR_V1_ID], *end;

	if (page.len != HR_V1_ID - 1 || memchr(page.p, '\0', page.len) != NULL)
		return false;
	memcpy(id, page.p, page.len);
	id[page.len] = '\0';
	*ret_order = strtoll(id + page.len - 4, &end, 16) - 1;
	memcpy(id + page.len - 4, "0000", 4);
	if (end == id + page.len && *ret_order >= 0 &&
	    hr_v1_parse_id(&of, (struct hr_span){id, page.len}) &&
	    (m->name[0] == '\0' || strcmp(m->name, of.name) == 0)) {
		*m = of;
		return true;
	}
	return false;
}

/* A query for events numbered after `after`, starting at `page` (-1: the first one). */
struct wanted {
	long long after, limit, page;
	bool down;
};

static void
put_page(struct hr_rex_call *c, const struct hr_v1_command *m, const struct hr_command_state *state,
    const struct wanted *w)
{
	struct hr_buf *b = &c->ret->body;
	bool over = state->end != HR_COMMAND_RUNNING;
	int64_t code = hr_v1_exit_code(state), from = w->after + 1, total, order, n = 0;
	HR_CLEAN(hr_v1_streams_close) struct hr_v1_streams s = {.out = -1, .err = -1};
	struct hr_v1_event e;

	hr_v1_streams_open(c, m->name, &s);
	total = (int64_t)(pieces(s.out_size) + (over ? pieces(s.err_size) + 1 : 0));
	order = w->page >= 0 ? w->page : w->down ? total - 1 : from;
	while (order >= from && order < total && n < w->limit && n < PAGE) {
		e = event_at(&s, (uint64_t)order, over, &code);
		hr_buf_adds(b, n++ > 0 ? "," : "");
		hr_v1_put_event(b, m, &s, &e, state->started + state->elapsed);
		order += w->down ? -1 : 1;
	}
	if (order >= from && order < total) {
		hr_buf_adds(b, "],\"next_page_id\":");
		hr_v1_put_id(b, m, (uint64_t)order);
		hr_buf_addc(b, '}');
	} else {
		hr_buf_adds(b, "],\"next_page_id\":null}");
	}
}

/* Parses the query. Returns false after sending an error. m is the command, or "" if there is
 * none. */
static bool
read_query(struct hr_rex_call *c, struct hr_v1_command *m, struct wanted *w)
{
	HR_BUF(text, 256);
	bool known, paged;

	known = hr_request_query(c->r, "command_id__eq", &text);
	if (known && !hr_v1_parse_id(m, hr_span_of_buf(&text)))
		m->name[0] = '\0';
	hr_buf_reset(&text);
	w->down = hr_request_query(c->r, "sort_order", &text) &&
		  strcmp(hr_buf_str(&text), "TIMESTAMP_DESC") == 0;
	hr_buf_reset(&text);
	if (hr_request_query(c->r, "kind__eq", &text) &&
	    strcmp(hr_buf_str(&text), "BashOutput") != 0)
		return hr_answer_detail(
		    c->ret, 422, "kind__eq: only events of the kind BashOutput are kept");
	if (!hr_v1_number(c, "order__gt", LLONG_MIN, LLONG_MAX, &w->after) ||
	    !hr_v1_number(c, "limit", 1, 100, &w->limit))
		return false;
	w->after = w->after < -1 ? -1 : w->after == LLONG_MAX ? LLONG_MAX - 1 : w->after;
	hr_buf_reset(&text);
	paged = hr_request_query(c->r, "page_id", &text) && text.len > 0;
	if (paged &&
	    ((known && m->name[0] == '\0') || !parse_page(m, hr_span_of_buf(&text), &w->page)))
		return hr_answer_detail(
		    c->ret, 422, "page_id is no next_page_id of that command's");
	if (!known && !paged)
		newest(c, m);
	return true;
}

void
hr_v1_search(struct hr_rex_call *c)
{
	struct wanted w = {.after = -1, .limit = 100, .page = -1};
	struct hr_command_state state;
	struct hr_v1_command m = {.name = ""};
	HR_BUF(frame, HR_FRAME_MAX);
	int found;

	if (!read_query(c, &m, &w))
		return;
	found = m.name[0] != '\0' ? hr_v1_look(c, m.name, &frame, &state) : 0;
	if (found < 0) {
		hr_answer_later(c->ret, "the command's shell cannot be asked now");
		return;
	}
	hr_buf_adds(&c->ret->body, "{\"items\":[");
	if (found > 0)
		put_page(c, &m, &state, &w);
	else
		hr_buf_adds(&c->ret->body, "],\"next_page_id\":null}");
}
