/* Copies the state that outlives the core, as plain bytes, after each event, and passes it to the
 * core of another process. */
#include "config.h"

#include <string.h>

#include "session/core_int.h"
#include "session/view/view.h"

static bool
put_text(struct hr_core_kept *to, size_t *io_at, const struct hr_buf *b)
{
	if (b->fail != HR_OK || b->len >= sizeof(to->text) - *io_at)
		return false;
	memcpy(to->text + *io_at, hr_buf_str(b), b->len + 1);
	*io_at += b->len + 1;
	return true;
}

static bool
put_texts(const struct hr_core *c, struct hr_core_kept *to)
{
	size_t at = 0;

	if (to->texts == c->texts)
		return true;
	if (!put_text(to, &at, &c->cwd) || !put_text(to, &at, &c->username) ||
	    !put_text(to, &at, &c->py_path) || !put_text(to, &at, &c->notice))
		return false;
	to->texts = c->texts;
	return true;
}

static bool
put_command(const struct hr_core *c, struct hr_core_kept *to)
{
	const struct hr_buf *typed = hr_view_typed(c->view);
	struct hr_view_points now;

	hr_view_points(c->view, &now);
	if (now.events[HR_VIEW_ECHO].number != 0 &&
	    (to->points.events[HR_VIEW_ECHO].number == 0 ||
		now.events[HR_VIEW_ECHO].at != to->points.events[HR_VIEW_ECHO].at)) {
		if (typed->fail != HR_OK || typed->len > sizeof(to->typed))
			return false;
		memcpy(to->typed, hr_buf_str(typed), typed->len);
		to->typed_len = typed->len;
	}
	to->points = now;
	if (to->requests == c->requests)
		return true;
	if (c->command.fail != HR_OK || c->command.len > sizeof(to->command))
		return false;
	memcpy(to->command, hr_buf_str(&c->command), c->command.len);
	to->command_len = c->command.len;
	to->requests = c->requests;
	return true;
}

/* Returns true if another core could continue from here: all typed text is known to be read. */
static bool
at_rest(const struct hr_core *c)
{
	if (c->to_type || c->interrupting)
		return false;
	switch (c->phase) {
	case PHASE_READY:
	case PHASE_PREPARING: return !c->s.active;
	case PHASE_TYPED: return c->s.takes_lines;
	case PHASE_BUSY: return true;
	default: return false;
	}
}

bool
hr_core_keep(const struct hr_core *c, struct hr_core_kept *to)
{
	if (!put_texts(c, to) || !put_command(c, to))
		return false;
	to->phase = (int)c->phase;
	to->state = c->s;
	if (c->unseen)
		to->state.last_change = c->unseen_to; /* this is an approximation */
	return at_rest(c) && to->points.whole;
}

/* Returns the next of the four texts, or "" if its NUL is missing because others have changed
 * it. */
static const char *
take_text(const char **io_p, const char *end)
{
	const char *text = *io_p, *nul = memchr(text, '\0', (size_t)(end - text));

	if (nul == NULL)
		return "";
	*io_p = nul + 1;
	return text;
}

static void
take_texts(struct hr_core *c, const struct hr_core_kept *from)
{
	struct hr_buf *const to[] = {&c->cwd, &c->username, &c->py_path, &c->notice};
	const char *p = from->text, *end = p + sizeof(from->text);
	size_t i;

	for (i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		hr_buf_reset(to[i]);
		hr_buf_adds(to[i], take_text(&p, end));
	}
	c->texts = from->texts + 1;
}

const char *
hr_core_kept_dir(const struct hr_core_kept *k)
{
	const char *p = k->text;

	return take_text(&p, k->text + sizeof(k->text));
}

struct hr_view *
hr_core_view(struct hr_core *c)
{
	return c->view;
}

static void
call_again(struct hr_view *v, enum hr_view_event event, struct hr_span typed)
{
	switch (event) {
	case HR_VIEW_LINE: hr_view_expect_line(v); break;
	case HR_VIEW_MORE: hr_view_expect_more(v); break;
	case HR_VIEW_ECHO:
		if (typed.p != NULL)
			hr_view_expect_echo(v, typed.p, typed.len);
		break;
	default: (void)hr_view_mark(v, &(struct hr_err){0}); break; /* otherwise text is repeated */
	}
}

/* Returns the event after the last one; HR_VIEW_EVENTS: there is none. */
static enum hr_view_event
next_event(const struct hr_view_points *p, uint32_t last)
{
	unsigned next = HR_VIEW_EVENTS, i;

	for (i = 0; i < HR_VIEW_EVENTS; i++) {
		if (p->events[i].number > last &&
		    (next == HR_VIEW_EVENTS || p->events[i].number < p->events[next].number))
			next = i;
	}
	return next;
}

/* Repeats the recorded events on a new view. `typed` is the line of HR_VIEW_ECHO; NULL: unknown. */
static void
repeat_events(struct hr_view *v, const struct hr_view_points *p, struct hr_span typed,
    void (*feed)(void *arg, struct hr_view *v, uint64_t fed), void *arg)
{
	enum hr_view_event event;
	uint32_t last = 0;
	char replies[256];

	if (p->readline)
		hr_view_readline_waits(v);
	while ((event = next_event(p, last)) != HR_VIEW_EVENTS) {
		last = p->events[event].number;
		feed(arg, v, p->events[event].at);
		call_again(v, event, typed);
	}
	feed(arg, v, HR_CORE_ALL);
	/* the program already got these answers */
	while (hr_view_replies(v, replies, sizeof(replies)) > 0)
		;
}

void
hr_core_replay(struct hr_core *c, const struct hr_core_kept *from,
    void (*feed)(void *arg, struct hr_view *v, uint64_t fed), void *arg)
{
	const bool whole = from->typed_len <= sizeof(from->typed);

	repeat_events(c->view, &from->points,
	    whole ? (struct hr_span){from->typed, from->typed_len} : (struct hr_span){NULL, 0},
	    feed, arg);
}

/* Adds the mark at `at` among the other events. */
static void
put_mark(struct hr_view_points *p, uint64_t at)
{
	uint32_t before = 0, *number;
	unsigned i;

	p->events[HR_VIEW_MARK].number = p->events[HR_VIEW_MARK_MAIN].number = 0;
	for (i = 0; i < HR_VIEW_EVENTS; i++) {
		number = &p->events[i].number;
		if (p->events[i].at <= at && *number > before)
			before = *number;
	}
	for (i = 0; i < HR_VIEW_EVENTS; i++) {
		number = &p->events[i].number;
		*number += *number > before;
	}
	p->events[HR_VIEW_MARK].at = at;
	p->events[HR_VIEW_MARK].number = before + 1;
}

static bool
is_marked_after(const struct hr_view_points *p, uint64_t at)
{
	return at <= p->reset ||
	       (p->events[HR_VIEW_MARK].number > 0 && p->events[HR_VIEW_MARK].at >= at) ||
	       (p->events[HR_VIEW_MARK_MAIN].number > 0 && p->events[HR_VIEW_MARK_MAIN].at >= at);
}

/* Builds a view that stops at `at` to be marked. Returns false with the old view in place. */
static bool
mark_at(struct hr_core *c, struct hr_view_points points, uint64_t at,
    void (*feed)(void *arg, struct hr_view *v, uint64_t fed), void *arg)
{
	const struct hr_buf *typed = hr_view_typed(c->view);
	struct hr_view *v = typed->fail == HR_OK ? hr_view_new(NULL) : NULL;

	if (v == NULL)
		return false;
	put_mark(&points, at);
	hr_view_begin(v, points.reset);
	repeat_events(v, &points, hr_span_of_buf(typed), feed, arg);
	hr_view_free(c->view);
	c->view = v;
	return true;
}

void
hr_core_returned(struct hr_core *c, uint64_t at,
    void (*feed)(void *arg, struct hr_view *v, uint64_t fed), void *arg)
{
	struct hr_view_points now;
	HR_BUF(rest, CORE_COMMAND_CAP);
	struct hr_err err = {0};
	bool lost;

	hr_view_points(c->view, &now);
	if (!c->s.running || c->s.active || is_marked_after(&now, at))
		return;
	/* The next result repeats whatever cannot be marked. */
	if (at >= (now.whole ? now.fed : now.ended))
		(void)hr_view_mark(c->view, &err);
	else if (!now.whole || !mark_at(c, now, at, feed, arg))
		return;
	/* a command that ended nothing else can be forgotten once all its output was returned */
	if (c->s.ended && hr_view_take(c->view, NULL, 0, NULL, &rest, &lost, &err) == 0 &&
	    rest.len == 0)
		hr_view_reset(c->view, true);
}

void
hr_core_resume(struct hr_core *c, const struct hr_core_kept *from)
{
	take_texts(c, from);
	hr_buf_reset(&c->command);
	if (from->command_len <= sizeof(from->command))
		hr_buf_add(&c->command, from->command, from->command_len);
	c->requests = from->requests + 1;
	c->generation = hr_view_generation(c->view);
	core_set_phase(c, (enum phase)from->phase, from->state.phase_deadline);
	c->s = from->state;
}

/* Takes the place of a killed shell: a command that the client believes running was killed with
 * it. */
void
hr_core_succeed(struct hr_core *c, const struct hr_core_kept *from)
{
	take_texts(c, from);
	c->requests = from->requests + 1;
	c->s.job = -1;
	c->s.running = c->s.ended = from->state.running;
	c->s.exit_code = from->state.ended ? from->state.exit_code : 137;
	hr_view_shell_ended(c->view);
	core_notice(c, "The shell was lost with its keeper, which had been killed,");
}
