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

/* Text that is appended to a row: what changes with each piece of it. */
struct flood {
	const uint8_t *at, *end; /* of the input */
	char *to, *to_end;       /* of the row's bytes */
	struct term_row *r;
	bool fresh; /* the row was empty, and the one above does not continue on it */
};

static inline void
flood_begin_row(const struct hr_term *t, struct flood *f, struct term_row *r, bool fresh)
{
	unsigned room = term_row_room(r) < t->cols ? term_row_room(r) : t->cols;

	f->to = term_row_bytes(r) + r->len;
	f->to_end = term_row_bytes(r) + room;
	f->r = r;
	f->fresh = fresh;
}

static inline unsigned
flood_row_len(const struct flood *f)
{
	return (unsigned)(f->to - term_row_bytes_const(f->r));
}

static inline void
flood_end_row(const struct flood *f)
{
	unsigned len = flood_row_len(f);

	if (len == f->r->len)
		return;
	f->r->len = (uint16_t)len;
	if (len > f->r->used)
		f->r->used = (uint16_t)len;
	f->r->flags |= ROW_DIRTY;
}

/* Copies the printable ASCII that the input goes on with, maybe none. In steps of eight, of which
 * the last may copy bytes that are none. False: the row has no room for all of it; then nothing is
 * done. */
static inline bool
flood_copy(const struct hr_term *t, struct flood *f)
{
	const uint8_t *at = f->at;
	char *to = f->to;
	uint64_t bad = 0;
	size_t n;

	while (f->end - at >= 8 && f->to_end - to >= 8) {
		memcpy(to, at, 8);
		bad = term_not_ascii(term_load(at));
		n = bad != 0 ? (size_t)__builtin_ctzll(bad) / 8 : 8;
		at += n;
		to += n;
		if (bad != 0)
			goto out;
	}
	for (; at < f->end && *at >= 0x20 && *at < TERM_DEL; at++) {
		if (to == f->to_end)
			return false;
		*to++ = (char)*at;
	}
out:
	f->at = at;
	f->to = to;
	term_row_grow_size(t, f->r, flood_row_len(f));
	return true;
}

/* How much text a line goes on with, at most n characters; the sequences in it are not looked at.
 */
static unsigned
flood_ahead(const uint8_t *b, size_t len, unsigned n)
{
	size_t i = 0, text = 0, run;

	while (i < len && text < n) {
		if (b[i] == TERM_ESC) {
			for (i += 2; i < len && b[i] >= 0x20 && b[i] < 0x40; i++)
				;
			i++;
			continue;
		}
		run = term_ascii_run(b + i, len - i);
		if (run == 0)
			break;
		i += run;
		text += run;
	}
	return text < n ? (unsigned)text : n;
}

/* Room for the whole line: a row that grows with each piece of it is moved each time. */
static bool
flood_reserve(struct hr_term *t, struct flood *f)
{
	unsigned len = flood_row_len(f);
	unsigned want = len + flood_ahead(f->at, (size_t)(f->end - f->at), t->cols - len);

	if (want <= term_row_room(f->r))
		return false;
	flood_end_row(f);
	if (!term_row_grow(t, f->r, want))
		return false;
	flood_begin_row(t, f, f->r, f->fresh);
	return true;
}

/* False: not all of the text fits into the row. */
static inline bool
flood_text(struct hr_term *t, struct flood *f)
{
	return flood_copy(t, f) || (flood_reserve(t, f) && flood_copy(t, f));
}

/* An SGR or EL that changes only the pen, if that; false: it is something else. */
static inline bool
flood_sequence(struct hr_term *t, struct flood *f)
{
	size_t len = (size_t)(f->end - f->at), n;

	if (len >= 3 && f->at[1] == '[' && f->at[2] == 'K') {
		/* compilers and grep say EL at each change; nothing is behind the cursor */
		if ((!f->fresh && flood_row_len(f) == 0) || t->pen & PEN_BG)
			return false;
		f->at += 3;
		return true;
	}
	n = term_sgr_whole(t, f->at, len);
	f->at += n;
	return n > 0;
}

static inline bool
flood_line_feed(struct hr_term *t, struct flood *f)
{
	unsigned n = t->pen & PEN_BG ? 0 : flood_line_end(t, f->at, (size_t)(f->end - f->at));
	bool continues = f->r->flags & ROW_WRAPPED;

	if (n == 0)
		return false;
	f->at += n;
	flood_end_row(f);
	flood_begin_row(t, f, flood_scroll(t), !continues);
	return true;
}

size_t
term_put_coloured(struct hr_term *t, const uint8_t *b, size_t len)
{
	struct term_row *r = row_to_append(t);
	struct flood f = {.at = b, .end = b + len};
	uint64_t first = term_top(t) + t->cy;
	bool scrolls = flood_possible(t), scrolled = false;
	const uint8_t *text = b, *line = b; /* where they began */
	bool plain;

	if (r == NULL)
		return 0;
	flood_begin_row(t, &f, r, false);
	while (flood_text(t, &f) && f.at < f.end) {
		if (*f.at == TERM_ESC) {
			if (!flood_sequence(t, &f))
				break;
		} else {
			plain = text == line;
			if (!scrolls || !flood_line_feed(t, &f))
				break;
			scrolled = true;
			text = line = f.at;
			if (plain)
				break; /* term_flood() is faster */
		}
		text = f.at;
	}
	if (f.at == b)
		return 0;
	flood_end_row(&f);
	if (scrolled)
		flood_dirty(t, first);
	t->cx = f.r->len;
	t->parser.last = f.at > text ? f.at[-1] : -1;
	t->parser.utf8_want = 0; /* it began with text */
	return (size_t)(f.at - b);
}
