/* Rows to text. A line is raw-empty if nothing was ever written to its rows; only those are dropped
 * at the end, and that is decided before white space is stripped. */
#include "config.h"

#include "term/term_int.h"

#include <string.h>

/* One extraction: lines so far, and the line that is being put together at the end of *out. */
struct text_sink {
	struct hr_buf *out;
	size_t line;   /* where it begins in out */
	size_t breaks; /* LFs owed before it */
	bool open;     /* its LFs are paid: it is not raw-empty */
};

bool
term_is_space(uint32_t cp)
{
	if (cp < 0x80)
		return cp == ' ' || (cp >= 0x09 && cp <= 0x0d) || (cp >= 0x1c && cp <= 0x1f);
	return cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) ||
	       cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

/* Length of the white space character that ends at p + len, or 0. */
static size_t
text_space_before(const char *p, size_t len)
{
	const uint8_t *b = (const uint8_t *)p;
	size_t n = 1;
	uint32_t cp;

	if (b[len - 1] < 0x80)
		return term_is_space(b[len - 1]);
	while (n < 3 && n < len && (b[len - n] & 0xc0) == 0x80)
		n++;
	if (n == 2)
		cp = (b[len - 2] & 0x1fu) << 6 | (b[len - 1] & 0x3fu);
	else if (n == 3 && (b[len - 3] & 0xf0) == 0xe0)
		cp = (b[len - 3] & 0x0fu) << 12 | (b[len - 2] & 0x3fu) << 6 | (b[len - 1] & 0x3fu);
	else
		return 0; /* no white space has four bytes */
	return term_is_space(cp) ? n : 0;
}

size_t
term_rstrip(const char *p, size_t len)
{
	size_t n;

	while (len > 0 && (n = text_space_before(p, len)) > 0)
		len -= n;
	return len;
}

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

	if (s->open && b->p != NULL && b->len > s->line) {
		b->len = s->line + term_rstrip(b->p + s->line, b->len - s->line);
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

static void
text_rows(const struct hr_term *t, uint64_t from, struct hr_buf *out)
{
	struct text_sink s = {.out = out};
	uint64_t top = term_top(t), i;

	for (i = from < t->base ? t->base : from; i < top; i++)
		text_row(&s, term_history_row(t, (unsigned)(i - t->base)));
	for (; i < top + t->screen.room; i++)
		text_row(&s, term_grid_row(t, (unsigned)(i - top)));
	text_end_line(&s);
}

void
hr_term_text(const struct hr_term *t, struct hr_buf *out)
{
	text_rows(t, 0, out);
}

void
hr_term_text_screen(const struct hr_term *t, struct hr_buf *out)
{
	text_rows(t, term_top(t), out);
}

void
hr_term_text_from(const struct hr_term *t, uint64_t row, struct hr_buf *out)
{
	text_rows(t, row, out);
}
