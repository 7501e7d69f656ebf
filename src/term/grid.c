/* Handles the rows of the screen: clears, moves and scrolls whole rows and columns as tmux's grid.c
 * and grid-view.c do. `bg` means that the background colour is not the default one: then tmux
 * allocates the whole row, which decides later whether the row counts as empty. */
#include "config.h"

#include "term/term_int.h"

#include <string.h>

static struct term_row *
grid_slot(const struct hr_term *t, unsigned y)
{
	unsigned at = t->screen.top + y;

	return &t->screen.row[at < t->rows ? at : at - t->rows];
}

struct term_row *
term_grid_row(const struct hr_term *t, unsigned y)
{
	return y < t->screen.room ? grid_slot(t, y) : NULL;
}

static bool
grid_need(struct hr_term *t, unsigned y)
{
	struct term_screen *s = &t->screen;
	unsigned room = s->room < 16 ? 16 : s->room;
	struct term_row *p;

	if (y < s->room)
		return true;
	while (room <= y)
		room *= 2;
	if (room > t->rows)
		room = t->rows;
	p = term_realloc(t, s->row, s->room * sizeof(*p), room * sizeof(*p));
	if (p == NULL)
		return false;
	memset(p + s->room, 0, (room - s->room) * sizeof(*p));
	s->row = p;
	s->room = room;
	return true;
}

struct term_row *
term_grid_allocate(struct hr_term *t, unsigned y)
{
	return grid_need(t, y) ? grid_slot(t, y) : NULL;
}

void
term_grid_free(struct hr_term *t, struct term_screen *s)
{
	unsigned i;

	for (i = 0; i < s->room; i++)
		term_row_free(t, &s->row[i]);
	(void)term_realloc(t, s->row, s->room * sizeof(*s->row), 0);
	memset(s, 0, sizeof(*s));
}

void
term_grid_forget(struct hr_term *t, unsigned y, unsigned n)
{
	struct term_row *r;

	for (; n > 0 && (r = term_grid_row(t, y)) != NULL; y++, n--)
		if (r->flags & ROW_COUNTED)
			term_change_forget(t, r, term_top(t) + y);
}

void
term_grid_renumbered(struct hr_term *t, unsigned y, unsigned n)
{
	struct term_row *r;

	for (; n > 0 && (r = term_grid_row(t, y)) != NULL; y++, n--)
		if (r->used > 0 || r->flags & (ROW_WRAPPED | ROW_DIRTY))
			term_change_dirty(t, r, term_top(t) + y);
}

void
term_grid_unwrap_above(struct hr_term *t, unsigned y)
{
	struct term_row *r;

	if (y > 0)
		r = term_grid_row(t, y - 1);
	else
		r = t->hist_len > 0 ? term_history_row(t, t->hist_len - 1) : NULL;
	if (r == NULL || !(r->flags & ROW_WRAPPED))
		return;
	term_change_dirty(t, r, term_top(t) + y - 1);
	r->flags &= (uint8_t)~ROW_WRAPPED;
}

/* Empties rows without regard to their neighbours. */
static void
grid_wipe(struct hr_term *t, unsigned y, unsigned n, bool bg)
{
	struct term_row *r;

	for (; n > 0; y++, n--) {
		r = term_grid_row(t, y);
		if (r == NULL && !bg)
			return; /* the rows below are not allocated either */
		if (r == NULL && (!grid_need(t, y) || (r = term_grid_row(t, y)) == NULL))
			return;
		if (r->flags & ROW_COUNTED)
			term_change_forget(t, r, term_top(t) + y);
		term_row_clear(t, r);
		r->size = bg ? 3 : 0;
	}
}

void
term_grid_clear_rows(struct hr_term *t, unsigned y, unsigned n, bool bg)
{
	if (n == 0)
		return;
	grid_wipe(t, y, n, bg);
	term_grid_unwrap_above(t, y);
}

void
term_grid_clear_part(struct hr_term *t, unsigned y, unsigned x, unsigned n, bool bg)
{
	struct term_row *r;

	if (n == 0)
		return;
	if (x == 0 && n == t->cols) {
		term_grid_clear_rows(t, y, 1, bg);
		return;
	}
	if (!bg && ((r = term_grid_row(t, y)) == NULL || x >= r->len))
		return;
	r = term_grid_write(t, y);
	if (r == NULL)
		return;
	if (bg)
		term_row_grow_size(t, r, x + n);
	term_row_erase(r, x, n);
}

static void
grid_swap(struct hr_term *t, unsigned a, unsigned b)
{
	struct term_row *p = grid_slot(t, a), *q = grid_slot(t, b), x = *p;

	*p = *q;
	*q = x;
}

/* Moves rows from..from+n-1 to `to`: their old places are emptied, and the former rows at the new
 * places are lost. The caller handles the flags of neighbours. */
static void
grid_shift(struct hr_term *t, unsigned to, unsigned from, unsigned n, bool bg)
{
	unsigned i, low = to < from ? to : from, high = (to < from ? from : to) + n;
	unsigned gap = to < from ? from - to : to - from;

	if (n == 0 || gap == 0 || (low >= t->screen.room && !bg) || !grid_need(t, high - 1))
		return;
	term_grid_forget(t, low, high - low);
	for (i = 0; to < from && i < n; i++)
		grid_swap(t, to + i, from + i);
	for (i = n; to > from && i > 0; i--)
		grid_swap(t, to + i - 1, from + i - 1);
	if (gap > n)
		gap = n;
	grid_wipe(t, to < from ? from + n - gap : from, gap, bg);
	term_grid_renumbered(t, low, high - low);
}

/* Implements tmux's grid_move_lines(). */
static void
grid_move(struct hr_term *t, unsigned to, unsigned from, unsigned n, bool bg)
{
	if (n == 0 || to == from)
		return;
	term_grid_unwrap_above(t, to);
	grid_shift(t, to, from, n, bg);
	if (from < to || from >= to + n)
		term_grid_unwrap_above(t, from);
}

/* Clears (n - moved) rows at y, as tmux does after a move. If that is negative nothing is cleared,
 * but the row above is no longer wrapped. */
static void
grid_clear_rest(struct hr_term *t, unsigned y, unsigned n, unsigned moved, bool bg)
{
	if (n > moved)
		term_grid_clear_rows(t, y, n - moved, bg);
	else if (n < moved)
		term_grid_unwrap_above(t, y);
}

void
term_grid_insert_rows(struct hr_term *t, unsigned y, unsigned n, bool bg)
{
	unsigned keep;

	if (y < t->upper || y > t->lower) {
		if (n > t->rows - y)
			n = t->rows - y;
		grid_move(t, y + n, y, t->rows - y - n, bg);
		return;
	}
	if (n > t->lower + 1 - y)
		n = t->lower + 1 - y;
	keep = t->lower + 1 - y - n;
	grid_move(t, t->lower + 1 - keep, y, keep, bg);
	grid_clear_rest(t, y + keep, n, keep, bg);
}

void
term_grid_delete_rows(struct hr_term *t, unsigned y, unsigned n, bool bg)
{
	unsigned end = y < t->upper || y > t->lower ? t->rows : t->lower + 1, keep;

	if (n > end - y)
		n = end - y;
	keep = end - y - n;
	grid_move(t, y, y + n, keep, bg);
	grid_clear_rest(t, y + keep, n, keep, bg);
}

/* Moves the whole screen up by one into the history. */
static void
grid_scroll_history(struct hr_term *t, bool bg)
{
	struct term_row *r, spare;

	if (!grid_need(t, bg ? t->rows - 1 : 0))
		return;
	r = grid_slot(t, 0);
	term_history_push(t, r);
	if (t->screen.room == t->rows) {
		t->screen.top = t->screen.top + 1 < t->rows ? t->screen.top + 1 : 0;
	} else {
		spare = *r;
		memmove(r, r + 1, (t->screen.room - 1) * sizeof(*r));
		r += t->screen.room - 1;
		*r = spare;
	}
	if (bg)
		r->size = 3;
}

/* Scrolls a region that starts at row 0: the screen moves, and the rows below the region move
 * back. */
static void
grid_scroll_upper_history(struct hr_term *t, unsigned n, bool bg)
{
	unsigned i;

	if (!grid_need(t, t->rows - 1))
		return;
	for (i = 0; i < n; i++)
		grid_scroll_history(t, false);
	grid_shift(t, t->lower + 1, t->lower + 1 - n, t->rows - 1 - t->lower, bg);
	if (bg)
		grid_wipe(t, t->lower + 1 - n, n, true);
}

/* Scrolls another region: its rows go into the history past those above it, which get new
 * numbers. */
static void
grid_scroll_region_history(struct hr_term *t, unsigned n, bool bg)
{
	struct term_row *r;
	unsigned i;

	if (!grid_need(t, t->lower))
		return;
	term_grid_forget(t, 0, t->rows);
	for (i = 0; i < n; i++) {
		r = grid_slot(t, t->upper + i);
		if (r->used > 0 || r->flags & (ROW_WRAPPED | ROW_DIRTY))
			term_change_dirty(t, r, term_top(t));
		term_history_push(t, r);
	}
	grid_shift(t, t->upper, t->upper + n, t->lower + 1 - t->upper - n, bg);
	if (bg)
		grid_wipe(t, t->lower + 1 - n, n, true);
	term_grid_renumbered(t, 0, t->rows);
}

void
term_grid_scroll_up(struct hr_term *t, unsigned n, bool bg)
{
	unsigned height = t->lower - t->upper + 1;

	if (n == 1 && height == t->rows && !t->alternate) {
		grid_scroll_history(t, bg);
		return;
	}
	if (n > height)
		n = height;
	if (t->alternate) {
		term_grid_unwrap_above(t, t->upper);
		grid_shift(t, t->upper, t->upper + n, height - n, bg);
		grid_wipe(t, t->lower + 1 - n, n, bg);
		if (height == 2)
			term_grid_unwrap_above(t, t->upper + 1);
	} else if (height == t->rows) {
		if (n > 1)
			/* the array is a ring once all rows are allocated, and scrolls faster */
			(void)grid_need(t, t->rows - 1);
		while (n-- > 0)
			grid_scroll_history(t, bg);
	} else if (t->upper == 0) {
		grid_scroll_upper_history(t, n, bg);
	} else {
		grid_scroll_region_history(t, n, bg);
	}
}

void
term_grid_scroll_down(struct hr_term *t, unsigned n, bool bg)
{
	unsigned height = t->lower - t->upper + 1;

	if (n > height)
		n = height;
	term_grid_unwrap_above(t, t->upper + 1);
	grid_shift(t, t->upper + n, t->upper, height - n, bg);
	grid_wipe(t, t->upper, n, bg); /* the shift does not clear these rows */
	term_grid_unwrap_above(t, t->upper);
}

void
term_grid_clear_all(struct hr_term *t, bool bg)
{
	unsigned y, last = 0;

	if (!t->alternate)
		for (y = t->screen.room; y > 0 && last == 0; y--)
			if (grid_slot(t, y - 1)->used > 0)
				last = y;
	if (last > 16)
		(void)grid_need(t, t->rows - 1);
	for (y = 0; y < last; y++)
		grid_scroll_history(t, bg);
	if (last < t->rows)
		term_grid_clear_rows(t, 0, t->rows - last, bg);
}
