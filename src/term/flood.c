/* Implements a fast path for long output: whole lines of printable ASCII that start at the left of
 * the bottom row. The effect is that of processing their characters and line feeds one by one, at a
 * few dozen instructions a line; anything unusual ends the fast path. */
#include "config.h"

#include "term/term_int.h"

#include <string.h>

static bool
flood_possible(const struct hr_term *t)
{
	bool acs = t->charset.shifted ? t->charset.g1_acs : t->charset.g0_acs;

	return t->cy == t->rows - 1 && t->upper == 0 && t->lower == t->rows - 1 &&
	       t->screen.room == t->rows && !t->alternate && t->wrap && !t->insert && !acs;
}

/* Returns the length of the line end at b; 0: none. */
static unsigned
flood_line_end(const struct hr_term *t, const uint8_t *b, size_t len)
{
	if (len > 0 && b[0] == '\n')
		return t->lf_is_crlf;
	return len > 1 && b[0] == '\r' && b[1] == '\n' ? 2 : 0;
}

/* Stores the text of the empty bottom row. */
static void
flood_store(struct hr_term *t, struct term_row *r, const uint8_t *b, unsigned n)
{
	unsigned i;
	char *p;

	if (n > term_row_room(r)) {
		term_row_put(t, r, 0, b, n);
		return;
	}
	p = term_row_bytes(r);
	if (n <= sizeof(r->few)) {
		for (i = 0; i < n; i++)
			p[i] = (char)b[i];
	} else {
		memcpy(p, b, n);
	}
	r->len = r->used = (uint16_t)n;
	term_row_grow_size(t, r, n);
}

/* Scrolls and returns the new bottom row. */
static inline struct term_row *
flood_scroll(struct hr_term *t)
{
	struct term_row *r = &t->screen.row[t->screen.top];

	t->screen.top = t->screen.top + 1 < t->rows ? t->screen.top + 1 : 0;
	if (t->hist_len < t->hist_room && t->hist_len < t->history_limit && !term_row_needs_seal(r))
		term_history_take(t, r);
	else
		term_history_push(t, r);
	return r;
}

/* Marks the rows from the given one on as written. */
static void
flood_dirty(struct hr_term *t, uint64_t first)
{
	if (first < t->dirty_lo)
		t->dirty_lo = first;
	if (term_top(t) + t->rows > t->dirty_hi)
		t->dirty_hi = term_top(t) + t->rows;
}

size_t
term_flood(struct hr_term *t, const uint8_t *b, size_t len)
{
	unsigned bottom = t->screen.top + t->rows - 1, n, end;
	struct term_row *r;
	uint64_t first;
	size_t i = 0;

	if (t->cx != 0 || t->pen & PEN_BG || !flood_possible(t))
		return 0;
	r = &t->screen.row[bottom < t->rows ? bottom : bottom - t->rows];
	first = term_top(t) + t->rows - 1;
	for (;;) {
		if (r->used > 0 || r->flags & (uint8_t)~ROW_DIRTY)
			break;
		n = (unsigned)term_ascii_run(b + i, len - i < t->cols ? len - i : t->cols);
		end = flood_line_end(t, b + i + n, len - i - n);
		if (end == 0)
			break;
		if (n > 0) {
			flood_store(t, r, b + i, n);
			r->flags |= ROW_DIRTY;
		}
		i += n + end;
		r = flood_scroll(t);
	}
	if (i > 0)
		flood_dirty(t, first);
	return i;
}
