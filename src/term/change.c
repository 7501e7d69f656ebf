/* Detects changes of the text. The text is the sequence of rows from the oldest to the last that is
 * not blank; its fingerprint is the sum of hash(row) * BASE^number modulo 2^64, shifted to the
 * number of the oldest row. Blank rows hash to 0. So scrolling costs nothing, and only rows written
 * to since the last call are examined: those are DIRTY and lie between dirty_lo and dirty_hi. */
#include "config.h"

#include "term/term_int.h"

#include <string.h>

#include "base/text/utf8.h"

#define HASH_BASE 0x9e3779b97f4a7c15u
#define HASH_BASE_INVERSE 0xf1de83e19937733du /* inverse of the base modulo 2^64 */

static uint64_t
change_power(uint64_t b, uint64_t e)
{
	uint64_t x = 1;

	for (; e > 0; e >>= 1, b *= b)
		if (e & 1)
			x *= b;
	return x;
}

/* Returns HASH_BASE^number; calls come mostly in order, or for the same row again. */
static uint64_t
change_power_at(struct hr_term *t, uint64_t number)
{
	if (number == t->power_number + 1)
		t->power *= HASH_BASE;
	else if (number != t->power_number)
		t->power = change_power(HASH_BASE, number);
	t->power_number = number;
	return t->power;
}

void
term_change_reset(struct hr_term *t)
{
	t->sum = 0;
	t->counted = 0;
	t->power_number = 0;
	t->power = 1;
	t->dirty_lo = UINT64_MAX;
	t->dirty_hi = 0;
}

void
term_change_forget(struct hr_term *t, struct term_row *r, uint64_t number)
{
	t->sum -= r->hash * change_power_at(t, number);
	r->flags &= (uint8_t)~ROW_COUNTED;
	t->counted--;
}

void
term_change_dirty(struct hr_term *t, struct term_row *r, uint64_t number)
{
	if (r->flags & ROW_COUNTED)
		term_change_forget(t, r, number);
	r->flags |= ROW_DIRTY;
	if (number < t->dirty_lo)
		t->dirty_lo = number;
	if (number > t->dirty_hi)
		t->dirty_hi = number;
}

static uint64_t
change_mix(uint64_t h, const char *p, size_t len)
{
	uint64_t w;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&w, p, 8);
		h = (h ^ w) * 0xff51afd7ed558ccdu;
		h ^= h >> 32;
	}
	if (len == 0)
		return h;
	for (w = len; len > 0; len--)
		w = w << 8 | (uint8_t)p[len - 1];
	h = (h ^ w) * 0xc4ceb9fe1a85ec53u;
	return h ^ h >> 29;
}

/* Mixes the cells' bytes in the same blocks as a row of bytes; returns their number. */
static size_t
change_mix_cells(uint64_t *h, const struct term_row *r, unsigned len)
{
	const struct term_cells *c = r->data;
	char buf[512 + TERM_CELL_BYTES];
	size_t n = 0, total = 0;
	unsigned i;

	for (i = 0; i < len; i++) {
		n += term_cell_bytes(r, c->cell[i], buf + n);
		if (n < 512)
			continue;
		*h = change_mix(*h, buf, 512);
		n -= 512;
		memcpy(buf, buf + 512, n);
		total += 512;
	}
	*h = change_mix(*h, buf, n);
	return total + n;
}

static unsigned
change_cells_len(const struct term_row *r)
{
	const struct term_cells *c = r->data;
	unsigned len = r->len;

	while (len > 0 && (c->cell[len - 1] & CELL_PAD ||
			      (!(c->cell[len - 1] & CELL_EXTRA) &&
				  hr_utf8_is_space((int32_t)(c->cell[len - 1] & CELL_VALUE)))))
		len--;
	return len;
}

/* Returns 0 for a blank row that does not continue. White space at the end counts only if the row
 * does. */
static uint32_t
change_hash(const struct term_row *r)
{
	bool wrapped = r->flags & ROW_WRAPPED;
	uint64_t h = wrapped ? 1 : 2;
	size_t len = r->len;

	if (r->flags & ROW_CELLS) {
		len = change_mix_cells(&h, r, wrapped ? r->len : change_cells_len(r));
	} else {
		if (!wrapped)
			len = hr_utf8_rstrip(term_row_bytes_const(r), len);
		h = change_mix(h, term_row_bytes_const(r), len);
	}
	if (len == 0 && !wrapped)
		return 0;
	if (wrapped) /* trailing blanks belong to the line */
		h = (h ^ (len + r->used - r->len)) * 0xff51afd7ed558ccdu;
	h ^= h >> 29; /* spreads all bits into the upper half */
	h = h * 0xbf58476d1ce4e5b9u >> 32;
	return h != 0 ? (uint32_t)h : 1;
}

static void
change_count(struct hr_term *t, struct term_row *r, uint64_t number)
{
	r->flags &= (uint8_t)~ROW_DIRTY;
	r->hash = change_hash(r);
	if (r->hash == 0)
		return;
	r->flags |= ROW_COUNTED;
	t->counted++;
	t->sum += r->hash * change_power_at(t, number);
}

uint64_t
hr_term_generation(struct hr_term *t)
{
	uint64_t i, top = term_top(t), fingerprint;
	struct term_row *r;

	if (t->dirty_lo < t->base)
		t->dirty_lo = t->base;
	if (t->dirty_lo <= t->dirty_hi) {
		for (i = t->dirty_lo; i <= t->dirty_hi && i < top + t->rows; i++) {
			r = i < top ? term_history_row(t, (unsigned)(i - t->base))
				    : term_grid_row(t, (unsigned)(i - top));
			if (r != NULL && r->flags & ROW_DIRTY)
				change_count(t, r, i);
		}
	}
	t->dirty_lo = UINT64_MAX;
	t->dirty_hi = 0;
	fingerprint = t->sum * change_power(HASH_BASE_INVERSE, t->base);
	if (fingerprint != t->fingerprint) {
		t->fingerprint = fingerprint;
		t->generation++;
	}
	return t->generation;
}
