/* Implements effects of control characters and sequences on the screen: cursor, line feeds,
 * erasing, tabs, scroll region, alternate screen. Each function is tmux's screen_write_ function of
 * that purpose. */
#include "config.h"

#include "term/term_int.h"

#include <string.h>

void
term_move(struct hr_term *t, int x, int y, bool with_origin)
{
	if (with_origin && y >= 0 && t->origin)
		y = (unsigned)y > t->lower - t->upper ? (int)t->lower : y + (int)t->upper;
	if (x >= 0)
		t->cx = (unsigned)x < t->cols ? (unsigned)x : t->cols - 1;
	if (y >= 0)
		t->cy = (unsigned)y < t->rows ? (unsigned)y : t->rows - 1;
}

void
term_up(struct hr_term *t, int n)
{
	unsigned room = t->cy < t->upper ? t->cy : t->cy - t->upper;

	if (t->cx == t->cols)
		t->cx--;
	t->cy -= (unsigned)n < room ? (unsigned)n : room;
}

void
term_down(struct hr_term *t, int n)
{
	unsigned room = (t->cy > t->lower ? t->rows - 1 : t->lower) - t->cy;

	if (t->cx == t->cols)
		t->cx--;
	t->cy += (unsigned)n < room ? (unsigned)n : room;
}

void
term_right(struct hr_term *t, int n)
{
	if (t->cx >= t->cols - 1 || (unsigned)n > t->cols - 1 - t->cx)
		t->cx = t->cols - 1;
	else
		t->cx += (unsigned)n;
}

void
term_left(struct hr_term *t, int n)
{
	t->cx -= (unsigned)n < t->cx ? (unsigned)n : t->cx;
}

/* Moves back; from the start of a continuation row it moves to the row before. */
void
term_backspace(struct hr_term *t)
{
	const struct term_row *r;

	if (t->cx > 0) {
		t->cx--;
		return;
	}
	if (t->cy == 0)
		return;
	r = term_grid_row(t, t->cy - 1);
	if (r != NULL && r->flags & ROW_WRAPPED) {
		t->cy--;
		t->cx = t->cols - 1;
	}
}

static bool
screen_tab_at(const struct hr_term *t, unsigned x)
{
	return t->tabs[x / 8] & 1u << x % 8;
}

void
term_tab(struct hr_term *t)
{
	while (t->cx < t->cols - 1)
		if (screen_tab_at(t, ++t->cx))
			break;
}

void
term_back_tab(struct hr_term *t, int n)
{
	if (t->cx > t->cols - 1)
		t->cx = t->cols - 1;
	while (t->cx > 0 && n-- > 0)
		while (--t->cx > 0 && !screen_tab_at(t, t->cx))
			;
}

void
term_tabs_default(struct hr_term *t)
{
	unsigned x;

	memset(t->tabs, 0, sizeof(t->tabs));
	for (x = 8; x < t->cols; x += 8)
		t->tabs[x / 8] |= (uint8_t)(1u << x % 8);
}

void
term_linefeed(struct hr_term *t, bool wrapped, bool bg)
{
	struct term_row *r;

	if (wrapped && (r = term_grid_write(t, t->cy)) != NULL)
		r->flags |= ROW_WRAPPED;
	if (t->cy == t->lower)
		term_grid_scroll_up(t, 1, bg);
	else if (t->cy < t->rows - 1)
		t->cy++;
}

void
term_reverse_index(struct hr_term *t)
{
	if (t->cy == t->upper)
		term_grid_scroll_down(t, 1, (t->pen & PEN_BG) != 0);
	else if (t->cy > 0)
		t->cy--;
}

void
term_region(struct hr_term *t, unsigned upper, unsigned lower)
{
	if (upper > t->rows - 1)
		upper = t->rows - 1;
	if (lower > t->rows - 1)
		lower = t->rows - 1;
	if (upper >= lower)
		return;
	t->cx = t->cy = 0;
	t->upper = upper;
	t->lower = lower;
}

static unsigned
screen_row_size(const struct hr_term *t)
{
	const struct term_row *r = term_grid_row(t, t->cy);

	return r == NULL ? 0 : t->sizes[r->size];
}

static void
screen_erase_row(struct hr_term *t)
{
	/* An untouched row is not changed, and neither is the flag of the row above. */
	if (screen_row_size(t) > 0 || t->pen & PEN_BG)
		term_grid_clear_rows(t, t->cy, 1, (t->pen & PEN_BG) != 0);
}

void
term_erase_line(struct hr_term *t, int how)
{
	bool bg = (t->pen & PEN_BG) != 0;

	if ((how == 0 && t->cx == 0) || (how == 1 && t->cx >= t->cols - 1) || how == 2)
		screen_erase_row(t);
	else if (how == 0 && t->cx < t->cols && (bg || t->cx < screen_row_size(t)))
		term_grid_clear_part(t, t->cy, t->cx, t->cols - t->cx, bg);
	else if (how == 1)
		term_grid_clear_part(t, t->cy, 0, t->cx + 1, bg);
}

void
term_erase_screen(struct hr_term *t, int how)
{
	bool bg = (t->pen & PEN_BG) != 0;

	if (how == 3) {
		term_history_clear(t);
	} else if (how == 2 || (how == 0 && t->cx == 0 && t->cy == 0)) {
		term_grid_clear_all(t, bg);
	} else if (how == 0) {
		if (t->cx < t->cols)
			term_grid_clear_part(t, t->cy, t->cx, t->cols - t->cx, bg);
		term_grid_clear_rows(t, t->cy + 1, t->rows - 1 - t->cy, bg);
	} else if (how == 1) {
		term_grid_clear_rows(t, 0, t->cy, bg);
		term_grid_clear_part(t, t->cy, 0, t->cx < t->cols ? t->cx + 1 : t->cols, bg);
	}
}

/* Performs DECALN: rows keep their flags. */
void
term_align(struct hr_term *t)
{
	uint8_t line[TERM_MAX_COLS];
	struct term_row *r;
	unsigned y;

	memset(line, 'E', t->cols);
	for (y = 0; y < t->rows; y++)
		if ((r = term_grid_write(t, y)) != NULL)
			term_row_put(t, r, 0, line, t->cols);
	t->cx = t->cy = 0;
	t->upper = 0;
	t->lower = t->rows - 1;
}

void
term_save(struct hr_term *t)
{
	t->saved.pen = t->pen;
	t->saved.charset = t->charset;
	t->saved.cx = t->cx;
	t->saved.cy = t->cy;
	t->saved.origin = t->origin;
}

void
term_restore(struct hr_term *t)
{
	t->pen = t->saved.pen;
	t->charset = t->saved.charset;
	t->origin = t->saved.origin;
	term_move(t, (int)t->saved.cx, (int)t->saved.cy, false);
}

void
term_alternate_on(struct hr_term *t, bool cursor)
{
	if (t->alternate)
		return;
	if (cursor) {
		t->alt_saved.cx = t->cx;
		t->alt_saved.cy = t->cy;
		t->alt_saved.valid = true;
	}
	t->alt_saved.pen = t->pen;
	term_grid_forget(t, 0, t->rows);
	t->main = t->screen;
	memset(&t->screen, 0, sizeof(t->screen));
	t->alternate = true;
	term_grid_unwrap_above(t, 0);
}

void
term_alternate_off(struct hr_term *t, bool cursor)
{
	if (cursor && t->alt_saved.valid) {
		t->cx = t->alt_saved.cx;
		t->cy = t->alt_saved.cy;
		t->pen = t->alt_saved.pen;
	}
	if (t->cx > t->cols - 1)
		t->cx = t->cols - 1;
	if (!t->alternate)
		return;
	term_grid_forget(t, 0, t->rows);
	term_grid_free(t, &t->screen);
	t->screen = t->main;
	memset(&t->main, 0, sizeof(t->main));
	t->alternate = false;
	term_grid_renumbered(t, 0, t->rows);
}

void
term_full_reset(struct hr_term *t)
{
	t->pen = 0;
	memset(&t->charset, 0, sizeof(t->charset));
	t->saved.pen = t->pen; /* the saved origin mode is not changed */
	t->saved.charset = t->charset;
	t->saved.cx = t->saved.cy = 0;
	term_tabs_default(t);
	t->upper = 0;
	t->lower = t->rows - 1;
	t->wrap = true;
	t->insert = t->origin = t->app_cursor = t->bracketed_paste = false;
	term_grid_clear_all(t, false);
	t->cx = t->cy = 0;
}
