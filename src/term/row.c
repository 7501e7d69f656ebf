/* Handles one row: bytes while its text is ASCII, cells otherwise. Invariant: len <= used, len <=
 * room, and columns from len on read as blanks; in the history (sealed) len counts bytes and used
 * only shows whether the row is empty. */
#include "config.h"

#include "term/term_int.h"
#include "base/text/utf8.h"

#include <string.h>

enum {
	ROW_KEEP_ROOM = 512, /* a cleared row keeps a buffer up to this size for its next text */
};

static size_t
row_cells_size(unsigned room)
{
	return sizeof(struct term_cells) + (size_t)room * sizeof(uint32_t);
}

static void
row_cells_free(struct hr_term *t, struct term_row *r)
{
	struct term_cells *c = r->data;

	(void)term_realloc(t, c->extra, c->extra_room * sizeof(*c->extra), 0);
	(void)term_realloc(t, c, row_cells_size(r->room), 0);
}

void
term_row_free(struct hr_term *t, struct term_row *r)
{
	if (r->flags & ROW_CELLS)
		row_cells_free(t, r);
	else if (r->room > 0)
		(void)term_realloc(t, r->data, r->room, 0);
	memset(r, 0, sizeof(*r));
}

void
term_row_clear(struct hr_term *t, struct term_row *r)
{
	if ((r->flags & ROW_CELLS) || r->room > ROW_KEEP_ROOM) {
		term_row_free(t, r);
		return;
	}
	r->used = r->len = 0;
	r->size = 0;
	r->flags = 0;
}

/* Returns the size to allocate for n: growing rows grow by half, up to the width of the screen. A
 * larger n is text on its way into the history, which grows no further. */
static unsigned
row_room_for(const struct hr_term *t, const struct term_row *r, unsigned n)
{
	unsigned want = n;

	if (n <= t->cols && want < r->room + r->room / 2u)
		want = r->room + r->room / 2u;
	want = (want + 7) / 8 * 8;
	return want > t->cols && n <= t->cols ? t->cols : want;
}

bool
term_row_grow(struct hr_term *t, struct term_row *r, unsigned n)
{
	unsigned room = row_room_for(t, r, n);
	void *p;

	if (r->flags & ROW_CELLS)
		p = term_realloc(t, r->data, row_cells_size(r->room), row_cells_size(room));
	else
		p = term_realloc(t, r->room > 0 ? r->data : NULL, r->room, room);
	if (p == NULL)
		return false;
	if (r->room == 0)
		memcpy(p, r->few, sizeof(r->few));
	r->data = p;
	r->room = (uint16_t)room;
	return true;
}

/* Makes room for n columns and blanks up to column x. */
static bool
row_reserve(struct hr_term *t, struct term_row *r, unsigned x, unsigned n)
{
	struct term_cells *c;
	unsigned i;

	if (n > term_row_room(r) && !term_row_grow(t, r, n))
		return false;
	if (x <= r->len)
		return true;
	if (r->flags & ROW_CELLS) {
		c = r->data;
		for (i = r->len; i < x; i++)
			c->cell[i] = ' ';
	} else {
		memset(term_row_bytes(r) + r->len, ' ', x - r->len);
	}
	r->len = (uint16_t)x;
	return true;
}

static bool
row_to_cells(struct hr_term *t, struct term_row *r)
{
	struct term_cells *c;
	const uint8_t *old = (const uint8_t *)term_row_bytes(r);
	unsigned room, i;

	if (r->flags & ROW_CELLS)
		return true;
	room = r->len + 16u < t->cols ? r->len + 16u : t->cols;
	c = term_realloc(t, NULL, 0, row_cells_size(room));
	if (c == NULL)
		return false;
	memset(c, 0, sizeof(*c));
	for (i = 0; i < r->len; i++)
		c->cell[i] = old[i];
	if (r->room > 0)
		(void)term_realloc(t, r->data, r->room, 0);
	r->data = c;
	r->room = (uint16_t)room;
	r->flags |= ROW_CELLS;
	return true;
}

uint32_t
term_row_get(const struct term_row *r, unsigned x)
{
	if (r == NULL || x >= r->len)
		return ' ';
	if (r->flags & ROW_CELLS)
		return ((const struct term_cells *)r->data)->cell[x];
	return (uint8_t)(r->room > 0 ? ((const char *)r->data)[x] : r->few[x]);
}

static void
row_used(const struct hr_term *t, struct term_row *r, unsigned n)
{
	term_row_grow_size(t, r, n);
	if (n > r->used)
		r->used = (uint16_t)n;
}

void
term_row_set(struct hr_term *t, struct term_row *r, unsigned x, uint32_t cell)
{
	uint8_t b = (uint8_t)cell;

	if (cell < 0x80) {
		term_row_put(t, r, x, &b, 1);
		return;
	}
	if (!row_to_cells(t, r) || !row_reserve(t, r, x, x + 1))
		return;
	((struct term_cells *)r->data)->cell[x] = cell;
	if (x + 1 > r->len)
		r->len = (uint16_t)(x + 1);
	row_used(t, r, x + 1);
}

void
term_row_put(struct hr_term *t, struct term_row *r, unsigned x, const uint8_t *p, unsigned n)
{
	struct term_cells *c;
	unsigned i;

	if ((x > r->len || x + n > term_row_room(r)) && !row_reserve(t, r, x, x + n))
		return;
	if (r->flags & ROW_CELLS) {
		c = r->data;
		for (i = 0; i < n; i++)
			c->cell[x + i] = p[i];
	} else {
		term_copy(term_row_bytes(r) + x, p, n);
	}
	if (x + n > r->len)
		r->len = (uint16_t)(x + n);
	row_used(t, r, x + n);
}

static void
row_blank(struct term_row *r, unsigned x, unsigned end)
{
	struct term_cells *c;

	if (!(r->flags & ROW_CELLS)) {
		memset(term_row_bytes(r) + x, ' ', end - x);
		return;
	}
	for (c = r->data; x < end; x++)
		c->cell[x] = ' ';
}

void
term_row_erase(struct term_row *r, unsigned x, unsigned n)
{
	if (x >= r->len)
		return;
	if (x + n >= r->len)
		r->len = (uint16_t)x; /* the row is blank from here on */
	else
		row_blank(r, x, x + n);
}

static void
row_move(struct term_row *r, unsigned to, unsigned from, unsigned n)
{
	struct term_cells *c = r->data;
	char *b = term_row_bytes(r);

	if (r->flags & ROW_CELLS)
		memmove(c->cell + to, c->cell + from, n * sizeof(c->cell[0]));
	else
		memmove(b + to, b + from, n);
}

/* Inserts as tmux's grid_view_insert_cells(): if fewer than n columns after the cursor's text are
 * left to move, those between keep their content; if none, nothing happens at all. */
void
term_row_insert(struct hr_term *t, struct term_row *r, unsigned x, unsigned n)
{
	unsigned count, end;

	if (x + 1 >= t->cols) {
		term_row_erase(r, x, 1);
		return;
	}
	count = t->cols - x - n;
	if (count == 0)
		return;
	row_used(t, r, t->cols);
	if (x >= r->len)
		return;
	end = r->len < x + count ? r->len : x + count;
	if (!row_reserve(t, r, x + n, end + n))
		return;
	row_move(r, x + n, x, end - x);
	r->len = (uint16_t)(end + n);
	row_blank(r, x, n < count ? x + n : x + count);
}

/* Deletes as tmux's grid_view_delete_cells(), for 0 < n < cols - x. */
void
term_row_delete(struct hr_term *t, struct term_row *r, unsigned x, unsigned n)
{
	row_used(t, r, t->cols - n);
	term_row_grow_size(t, r, t->cols);
	if (x >= r->len)
		return;
	if (x + n >= r->len) {
		r->len = (uint16_t)x;
		return;
	}
	row_move(r, x, x + n, r->len - x - n);
	r->len = (uint16_t)(r->len - n);
}

unsigned
term_cell_bytes(const struct term_row *r, uint32_t cell, char *out)
{
	const struct term_extra *x;

	if (cell & CELL_PAD)
		return 0;
	if (!(cell & CELL_EXTRA))
		return (unsigned)hr_utf8_put(out, cell & CELL_VALUE);
	x = &((const struct term_cells *)r->data)->extra[cell & CELL_VALUE];
	memcpy(out, x->bytes, x->len);
	return x->len;
}

/* Makes room for one more extra, by copying those that a cell still refers to. */
static bool
row_extra_reserve(struct hr_term *t, struct term_row *r)
{
	struct term_cells *c = r->data;
	struct term_extra *x;
	unsigned i, n = 0, room;

	if (c->extra_len < c->extra_room)
		return true;
	for (i = 0; i < r->len; i++)
		n += (c->cell[i] & (CELL_PAD | CELL_EXTRA)) == CELL_EXTRA;
	room = 2 * n + 4;
	x = term_realloc(t, NULL, 0, room * sizeof(*x));
	if (x == NULL)
		return false;
	for (i = n = 0; i < r->len; i++) {
		if ((c->cell[i] & (CELL_PAD | CELL_EXTRA)) != CELL_EXTRA)
			continue;
		x[n] = c->extra[c->cell[i] & CELL_VALUE];
		c->cell[i] = (c->cell[i] & ~CELL_VALUE) | n++;
	}
	(void)term_realloc(t, c->extra, c->extra_room * sizeof(*x), 0);
	c->extra = x;
	c->extra_len = (uint16_t)n;
	c->extra_room = (uint16_t)room;
	return true;
}

uint32_t
term_row_extra(struct hr_term *t, struct term_row *r, const char *p, unsigned n, bool wide)
{
	struct term_cells *c;
	struct term_extra *x;

	if (!row_to_cells(t, r) || !row_extra_reserve(t, r))
		return 0;
	c = r->data;
	x = &c->extra[c->extra_len];
	x->len = (uint8_t)n;
	memcpy(x->bytes, p, n);
	return CELL_EXTRA | (wide ? CELL_WIDE : 0) | c->extra_len++;
}

static unsigned
row_cell_len(const struct term_cells *c, uint32_t cell)
{
	if (cell & CELL_PAD)
		return 0;
	if (cell & CELL_EXTRA)
		return c->extra[cell & CELL_VALUE].len;
	cell &= CELL_VALUE;
	return cell < 0x80 ? 1 : cell < 0x800 ? 2 : cell < 0x10000 ? 3 : 4;
}

/* Converts cells to bytes. Without memory the text is lost. */
static void
row_seal_cells(struct hr_term *t, struct term_row *r)
{
	struct term_row flat = *r;
	const struct term_cells *c = r->data;
	unsigned n = 0, i;
	char *q;

	flat.flags &= (uint8_t)~ROW_CELLS;
	flat.room = flat.len = 0;
	for (i = 0; i < r->len; i++)
		n += row_cell_len(c, c->cell[i]);
	if (n <= sizeof(flat.few) || term_row_grow(t, &flat, n)) {
		q = term_row_bytes(&flat);
		for (i = 0; i < r->len; i++) {
			if (c->cell[i] < 0x80)
				*q++ = (char)c->cell[i];
			else
				q += term_cell_bytes(r, c->cell[i], q);
		}
		flat.len = (uint16_t)n;
	}
	/* the row has no text if all cells were PAD */
	flat.used = (uint16_t)(flat.len + r->used - r->len);
	row_cells_free(t, r);
	*r = flat;
}

/* Trims blanks at the end of a long row, which waste memory. Short rows are not examined, so that a
 * flood of short lines does not read again the lines written a thousand lines before. */
static void
row_trim(struct hr_term *t, struct term_row *r)
{
	char *b = term_row_bytes(r), few[sizeof(r->few)];
	unsigned n = r->len;
	void *p;

	while (n > 0 && b[n - 1] == ' ')
		n--;
	r->len = (uint16_t)n;
	if (r->room <= 2u * n + TERM_ROW_SLACK)
		return;
	if (n <= sizeof(few)) {
		memcpy(few, b, n);
		(void)term_realloc(t, r->data, r->room, 0);
		memcpy(r->few, few, n);
		r->room = 0;
	} else if ((p = term_realloc(t, r->data, r->room, n)) != NULL) {
		r->data = p;
		r->room = (uint16_t)n;
	}
}

void
term_row_seal(struct hr_term *t, struct term_row *r)
{
	if (r->flags & ROW_CELLS)
		row_seal_cells(t, r);
	if (!(r->flags & ROW_WRAPPED))
		row_trim(t, r);
	else if (r->used > r->len && !row_reserve(t, r, r->used, r->used))
		r->used = r->len; /* the blanks belong to the line, but there is no memory */
}
