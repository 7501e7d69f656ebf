/* Writes characters to the screen. tmux has two ways, which treat halves of wide characters
 * differently: ASCII with wrapping on and neither insert mode nor line drawing is collected and
 * stored in runs (put_run()), everything else goes cell by cell (term_put()). */
#include "config.h"

#include "term/term_int.h"
#include "base/text/utf8.h"

enum {
	/* bytes of input that a joiner waits; tmux forgets it at the end of a read */
	PUT_JOINER_REACH = 4096,
	PUT_CHARSET = 0x8000, /* makes a blank differ from the default one */
};

static bool
put_is_pad(const struct term_row *r, unsigned x)
{
	return term_row_get(r, x) & CELL_PAD;
}

static bool
put_is_wide(uint32_t cell)
{
	return !(cell & CELL_PAD) && cell & CELL_WIDE;
}

/* Blanks the rest of a wide character whose right half is about to be overwritten at x. In column 0
 * the left half stays: tmux stops searching one column early. */
static void
put_mend_left(struct hr_term *t, struct term_row *r, unsigned x)
{
	for (; x > 0; x--) {
		if (!put_is_pad(r, x)) {
			if (put_is_wide(term_row_get(r, x)))
				term_row_set(t, r, x, ' ');
			return;
		}
		term_row_set(t, r, x, ' ');
	}
}

static bool
put_mend_right(struct hr_term *t, struct term_row *r, unsigned x)
{
	bool any = false;

	for (; x < t->cols && put_is_pad(r, x); x++) {
		term_row_set(t, r, x, ' ');
		any = true;
	}
	return any;
}

static void
put_wrap(struct hr_term *t)
{
	term_linefeed(t, true, false);
	t->cx = 0;
}

static void
put_run(struct hr_term *t, const uint8_t *p, size_t n)
{
	struct term_row *r;
	unsigned k;

	for (; n > 0; p += k, n -= k) {
		if (t->cx > t->cols - 1)
			put_wrap(t);
		k = n < t->cols - t->cx ? (unsigned)n : t->cols - t->cx;
		r = term_grid_write(t, t->cy);
		if (r != NULL && !(r->flags & ROW_CELLS)) {
			if (t->cx == r->len && r->len + k <= term_row_room(r))
				term_row_append(t, r, p, k);
			else
				term_row_put(t, r, t->cx, p, k);
		} else if (r != NULL) {
			put_mend_left(t, r, t->cx);
			term_row_put(t, r, t->cx, p, k);
			(void)put_mend_right(t, r, t->cx + k);
		}
		t->cx += k;
	}
}

void
term_put_ascii(struct hr_term *t, const uint8_t *p, size_t n)
{
	bool acs = t->charset.shifted ? t->charset.g1_acs : t->charset.g0_acs;
	uint32_t pen = t->pen;

	if (t->wrap && !t->insert && !acs) {
		put_run(t, p, n);
		return;
	}
	if (acs)
		t->pen |= PUT_CHARSET;
	for (; n > 0; p++, n--)
		term_put(t, *p, 1);
	t->pen = pen;
}

/* Appends to the character left of the cursor, if there is one with room. */
static void
put_combine(struct hr_term *t, uint32_t cp)
{
	struct term_row *r;
	char bytes[TERM_CELL_BYTES + 4];
	unsigned x, n;
	uint32_t cell;

	if (t->cx == 0 || (r = term_grid_write(t, t->cy)) == NULL)
		return;
	for (x = t->cx - 1; put_is_pad(r, x); x--)
		if (x == 0)
			return;
	cell = term_row_get(r, x);
	n = term_cell_bytes(r, cell, bytes);
	n += (unsigned)hr_utf8_put(bytes + n, cp);
	if (n > TERM_CELL_BYTES)
		return;
	cell = term_row_extra(t, r, bytes, n, cell & CELL_WIDE);
	if (cell != 0)
		term_row_set(t, r, x, cell);
}

/* Implements tmux's screen_write_overwrite(). Returns true if anything was blanked. */
static bool
put_overwrite(struct hr_term *t, struct term_row *r, unsigned width)
{
	uint32_t now = term_row_get(r, t->cx);
	unsigned x = t->cx;
	bool any = false;

	if (now & CELL_PAD) {
		for (; x > 0 && put_is_pad(r, x); x--)
			term_row_set(t, r, x, ' ');
		term_row_set(t, r, x, ' ');
		any = true;
	}
	if (width != 1 || now & (CELL_PAD | CELL_WIDE))
		any |= put_mend_right(t, r, t->cx + width);
	return any;
}

static void
put_store(struct hr_term *t, struct term_row *r, uint32_t cp, unsigned width, bool skip)
{
	unsigned x;

	if (put_overwrite(t, r, width))
		skip = false;
	for (x = t->cx + 1; x < t->cx + width; x++) {
		term_row_set(t, r, x, CELL_PAD);
		skip = false;
	}
	/* A default blank is not stored where the row is not allocated. */
	if (skip && t->cx >= t->sizes[r->size] && cp == ' ' && t->pen == 0)
		return;
	term_row_set(t, r, t->cx, cp | (width > 1 ? CELL_WIDE : 0));
}

void
term_put(struct hr_term *t, uint32_t cp, int width)
{
	unsigned w = (unsigned)width, last = t->wrap ? 0 : 1;
	struct term_row *r;
	bool joined = t->joiner && t->fed < t->joiner_end;

	if (cp == TERM_JOINER) {
		t->joiner = true;
		t->joiner_end = t->fed + PUT_JOINER_REACH;
		return;
	}
	if (joined)
		put_combine(t, TERM_JOINER);
	if (joined || w == 0) {
		t->joiner = false;
		put_combine(t, cp);
		return;
	}
	if (!t->wrap && w > 1 && t->cx != t->cols && t->cx > t->cols - w)
		return;
	if (t->insert && (r = term_grid_write(t, t->cy)) != NULL && t->cx < t->cols)
		term_row_insert(t, r, t->cx, w);
	if (t->wrap && t->cx > t->cols - w)
		put_wrap(t);
	if (t->cx > t->cols - w)
		return;
	r = term_grid_write(t, t->cy);
	if (r != NULL)
		put_store(t, r, cp, w, !t->insert);
	if (t->cx + last + w <= t->cols)
		t->cx += w;
	else
		t->cx = t->cols - last;
}
