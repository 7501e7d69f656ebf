/* Converts rows to text. A line is raw-empty if nothing was ever written to its rows; only such
 * lines are dropped at the end, which is decided before white space is stripped. */
#include "config.h"

#include "term/term_int.h"

#include "base/text/utf8.h"

/* The state of one extraction: the lines so far, and the unfinished line at the end of *out. */
struct text_sink {
	struct hr_buf *out;
	size_t line;   /* offset of the unfinished line in out */
	size_t breaks; /* LFs pending before the line */
	bool open;     /* the LFs were written, so the line is not raw-empty */
	bool exact;    /* keep white space at the end of a line */
};

static void
text_add(struct text_sink *s, const char *p, size_t len)
{
	static const char lf[] = "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n";
	size_t n;

	if (!s->open) {
		for (; s->breaks > 0; s->breaks -= n) {
			n = s->breaks < sizeof(lf) - 1 ? s->breaks : sizeof(lf) - 1;
			hr_buf_add(s->out, lf, n);
		}
		s->line = s->out->len;
		s->open = true;
	}
	hr_buf_add(s->out, p, len);
}

static void
text_blanks(struct text_sink *s, size_t n)
{
	static const char blanks[] = "                                ";

	for (; n > sizeof(blanks) - 1; n -= sizeof(blanks) - 1)
		text_add(s, blanks, sizeof(blanks) - 1);
	if (n > 0)
		text_add(s, blanks, n);
}

static void
text_end_line(struct text_sink *s)
{
	struct hr_buf *b = s->out;

	if (s->open && !s->exact && b->p != NULL && b->len > s->line) {
		b->len = s->line + hr_utf8_rstrip(b->p + s->line, b->len - s->line);
		b->p[b->len] = '\0';
	}
	s->open = false;
	s->breaks++;
}

static void
text_cells(struct text_sink *s, const struct term_row *r)
{
	const struct term_cells *c = r->data;
	char buf[256 + TERM_CELL_BYTES];
	unsigned col;
	size_t n = 0;

	for (col = 0; col < r->len; col++) {
		n += term_cell_bytes(r, c->cell[col], buf + n);
		if (n >= 256) {
			text_add(s, buf, n);
			n = 0;
		}
	}
	if (n > 0)
		text_add(s, buf, n);
}

static void
text_row(struct text_sink *s, const struct term_row *r)
{
	if (r == NULL) {
		text_end_line(s);
		return;
	}
	if (r->flags & ROW_CELLS)
		text_cells(s, r);
	else if (r->len > 0)
		text_add(s, term_row_bytes_const(r), r->len);
	if (r->used > r->len)
		text_blanks(s, (size_t)(r->used - r->len));
	if (!(r->flags & ROW_WRAPPED))
		text_end_line(s);
}

/* Returns the number of rows before `to` that are below all written ones. */
static uint64_t
text_rows(const struct hr_term *t, struct text_sink *s, uint64_t from, uint64_t to)
{
	uint64_t top = term_top(t), i;

	for (i = from < t->base ? t->base : from; i < top && i < to; i++)
		text_row(s, term_history_row(t, (unsigned)(i - t->base)));
	for (; i < top + t->screen.room && i < to; i++)
		text_row(s, term_grid_row(t, (unsigned)(i - top)));
	return i < to ? to - i : 0;
}

void
hr_term_text_from(const struct hr_term *t, uint64_t from, struct hr_buf *out)
{
	struct text_sink s = {.out = out};

	(void)text_rows(t, &s, from, UINT64_MAX);
	text_end_line(&s);
}

void
hr_term_text_exact(const struct hr_term *t, uint64_t from, struct hr_buf *out)
{
	struct text_sink s = {.out = out, .exact = true};
	uint64_t cursor = hr_term_cursor_row(t);
	size_t breaks, len;
	uint64_t below;

	below = text_rows(t, &s, from, cursor);
	breaks = (s.open ? 0 : s.breaks) + (size_t)below;
	len = out->len;
	(void)text_rows(t, &s, from > cursor ? from : cursor, UINT64_MAX);
	text_end_line(&s);
	for (; out->len == len && breaks > 0; breaks--, len++)
		hr_buf_addc(out, '\n');
}

void
hr_term_text(const struct hr_term *t, struct hr_buf *out)
{
	hr_term_text_from(t, 0, out);
}

void
hr_term_text_screen(const struct hr_term *t, struct hr_buf *out)
{
	hr_term_text_from(t, term_top(t), out);
}
