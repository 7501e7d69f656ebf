/* Keeps sealed rows that have left the screen at its top, in a ring of bytes. Before a row is added
 * to a full history a tenth of it is dropped at once, as tmux does. Dropped rows leave their
 * buffers in the slots, and the row that enters the slot later gives the buffer to the new row of
 * the screen: a flood of output allocates nothing. */
#include "config.h"

#include "term/term_int.h"

#include <string.h>

/* Drops the n oldest rows; `keep`: keeps their buffers. */
static void
history_drop(struct hr_term *t, unsigned n, bool keep)
{
	struct term_row *r;
	unsigned i;

	for (i = 0; i < n && (t->counted > 0 || !keep); i++) {
		r = term_history_row(t, i);
		if (r->flags & ROW_COUNTED)
			term_change_forget(t, r, t->base + i);
		if (!keep)
			term_row_free(t, r);
	}
	t->hist_head += n;
	if (t->hist_head >= t->hist_room)
		t->hist_head -= t->hist_room;
	t->hist_len -= n;
	t->base += n;
}

static void
history_free_ring(struct hr_term *t)
{
	unsigned i;

	for (i = 0; i < t->hist_room; i++)
		term_row_free(t, &t->hist[i]);
	(void)term_realloc(t, t->hist, t->hist_room * sizeof(*t->hist), 0);
	t->hist = NULL;
	t->hist_room = t->hist_head = 0;
}

void
term_history_clear(struct hr_term *t)
{
	history_drop(t, t->hist_len, false);
	history_free_ring(t);
}

bool
term_history_relieve(struct hr_term *t)
{
	unsigned i, n;
	bool any = false;

	for (i = t->hist_len; i < t->hist_room; i++) {
		any = any || term_history_row(t, i)->room > 0;
		term_row_free(t, term_history_row(t, i));
	}
	if (any)
		return true;
	if (t->hist_len == 0)
		return false;
	n = t->hist_len < 10 ? 1 : t->hist_len / 10;
	t->dropped += n;
	history_drop(t, n, false);
	return true;
}

static bool
history_grow(struct hr_term *t)
{
	unsigned room = t->hist_room < 16 ? 16 : t->hist_room * 2, tail;
	struct term_row *p;

	if (room > t->history_limit)
		room = t->history_limit;
	p = term_realloc(t, NULL, 0, room * sizeof(*p));
	if (p == NULL)
		return false;
	/* Allocating may have dropped rows, so read the tail only now. */
	tail = t->hist_room - t->hist_head;
	if (t->hist_room > 0) {
		memcpy(p, t->hist + t->hist_head, tail * sizeof(*p));
		memcpy(p + tail, t->hist, t->hist_head * sizeof(*p));
	}
	memset(p + t->hist_room, 0, (room - t->hist_room) * sizeof(*p));
	(void)term_realloc(t, t->hist, t->hist_room * sizeof(*p), 0);
	t->hist = p;
	t->hist_room = room;
	t->hist_head = 0;
	return true;
}

/* Makes room for a row: drops a tenth of a full history, or grows a small ring. Returns false if
 * the row must be dropped. */
static bool
history_make_room(struct hr_term *t)
{
	unsigned n;

	if (t->hist_len >= t->history_limit) {
		n = t->history_limit < 10 ? 1 : t->history_limit / 10;
		t->dropped += n;
		history_drop(t, n, true);
	}
	/* Growing fails only with nothing left to drop. */
	return t->hist_len < t->hist_room || history_grow(t) || t->hist_room > 0;
}

void
term_history_push(struct hr_term *t, struct term_row *r)
{
	if (term_row_needs_seal(r))
		term_row_seal(t, r);
	if ((t->hist_len == t->hist_room || t->hist_len >= t->history_limit) &&
	    !history_make_room(t)) {
		if (r->flags & ROW_COUNTED)
			term_change_forget(t, r, term_top(t));
		term_row_clear(t, r);
		t->base++;
		t->dropped++;
		return;
	}
	term_history_take(t, r);
}
