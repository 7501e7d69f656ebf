/* What long output consists of: whole lines of printable ASCII that begin at the left of the bottom
 * row, and such text with colours in it. The same as taking their characters, sequences and line
 * feeds one after the other, in a few dozen instructions a line; whatever is out of the ordinary
 * ends it and is left to the general way. */
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

/* Length of the line end at b, 0 if there is none. */
static unsigned
flood_line_end(const struct hr_term *t, const uint8_t *b, size_t len)
{
	if (len > 0 && b[0] == '\n')
		return t->lf_is_crlf;
	return len > 1 && b[0] == '\r' && b[1] == '\n' ? 2 : 0;
}

/* The bottom row, which is empty, gets its text. */
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

/* Scrolls; returns the new bottom row. */
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

/* Rows from the given one on were written to. */
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

	if (t->cx != 0 || t->pen.bg || !flood_possible(t))
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

/* ---- with colours ---- */

/* The row that the cursor stands at the end of, where nothing is unusual; else NULL. */
static struct term_row *
row_to_append(struct hr_term *t)
{
	bool acs = t->charset.shifted ? t->charset.g1_acs : t->charset.g0_acs;
	struct term_row *r;

	if (!t->wrap || t->insert || acs)
		return NULL;
	r = term_grid_write(t, t->cy);
	return r != NULL && !(r->flags & ROW_CELLS) && t->cx == r->len ? r : NULL;
}

/* Copies printable ASCII, at most n bytes; how many that were. In steps of eight, of which the last
 * may copy bytes that are none. */
static inline size_t
flood_copy(char *to, const uint8_t *b, size_t n)
{
	uint64_t bad;
	size_t i;

	for (i = 0; i + 8 <= n; i += 8) {
		memcpy(to + i, b + i, 8);
		bad = term_not_ascii(term_load(b + i));
		if (bad != 0)
			return i + (size_t)__builtin_ctzll(bad) / 8;
	}
	for (; i < n && b[i] >= 0x20 && b[i] < TERM_DEL; i++)
		to[i] = (char)b[i];
	return i;
}

/* A row that text is appended to: what changes with each piece of it. */
struct flood_row {
	struct term_row *r;
	char *bytes;
	unsigned len, room;
	bool fresh; /* it was empty, and the row above does not continue on it */
};

static inline void
flood_row_begin(const struct hr_term *t, struct flood_row *f, struct term_row *r, bool fresh)
{
	f->r = r;
	f->bytes = term_row_bytes(r);
	f->len = r->len;
	f->room = term_row_room(r) < t->cols ? term_row_room(r) : t->cols;
	f->fresh = fresh;
}

static inline void
flood_row_end(const struct flood_row *f)
{
	if (f->len == f->r->len)
		return;
	f->r->len = (uint16_t)f->len;
	if (f->len > f->r->used)
		f->r->used = (uint16_t)f->len;
	f->r->flags |= ROW_DIRTY;
}

/* All of the text that begins at b, which may be none; false: the row has no room for it. */
static inline bool
flood_row_append(
    const struct hr_term *t, struct flood_row *f, const uint8_t *b, size_t len, size_t *ret_n)
{
	size_t left = f->room - f->len,
	       n = flood_copy(f->bytes + f->len, b, len < left ? len : left);

	*ret_n = n;
	if (n == left && n < len && b[n] >= 0x20 && b[n] < TERM_DEL)
		return false;
	f->len += (unsigned)n;
	term_row_grow_size(t, f->r, f->len);
	return true;
}

/* The length of an SGR or EL that changes only the packed pen, if that; 0: it is something else. */
static inline size_t
flood_sequence(
    struct hr_term *t, const struct flood_row *f, uint32_t *io_pen, const uint8_t *b, size_t len)
{
	ssize_t n;

	if (len > TERM_SGR_REACH)
		len = TERM_SGR_REACH;
	if (len < 3 || b[1] != '[')
		return 0;
	/* compilers and grep say EL at each change; nothing is behind the cursor */
	if (b[2] == 'K')
		return (f->len > 0 || f->fresh) && !(*io_pen & PEN_BG) ? 3 : 0;
	n = term_sgr_quick(t, io_pen, b + 2, len - 2);
	return n > 0 ? (size_t)n + 2 : 0;
}

size_t
term_put_coloured(struct hr_term *t, const uint8_t *b, size_t len)
{
	struct term_row *r = row_to_append(t);
	uint32_t pen = term_pen_pack(&t->pen);
	uint64_t first = term_top(t) + t->cy;
	bool scrolls = flood_possible(t), scrolled = false, continues;
	size_t i = 0, n, text = 0; /* text: where it began */
	struct flood_row f;

	if (r == NULL)
		return 0;
	flood_row_begin(t, &f, r, false);
	while (flood_row_append(t, &f, b + i, len - i, &n)) {
		i += n;
		if (i == len)
			break;
		if (b[i] == TERM_ESC) {
			n = flood_sequence(t, &f, &pen, b + i, len - i);
			if (n == 0)
				break;
		} else {
			n = scrolls && !(pen & PEN_BG) ? flood_line_end(t, b + i, len - i) : 0;
			if (n == 0)
				break;
			flood_row_end(&f);
			continues = f.r->flags & ROW_WRAPPED;
			flood_row_begin(t, &f, flood_scroll(t), !continues);
			scrolled = true;
		}
		i += n;
		text = i;
	}
	if (i == 0)
		return 0;
	flood_row_end(&f);
	if (scrolled)
		flood_dirty(t, first);
	t->cx = f.len;
	term_pen_unpack(&t->pen, pen);
	t->parser.last = i > text ? b[i - 1] : -1;
	t->parser.utf8_want = 0; /* it began with text */
	return i;
}
