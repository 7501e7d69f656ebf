/* SGR, as far as it can be seen in text: whether attributes and colours are the default ones
 * decides about blanks that are not stored (put.c) and rows that count as allocated (grid.c). */
#include "config.h"

#include "term/term_int.h"

#include <stdlib.h>
#include <string.h>

enum {
	ATTR_BRIGHT = 1,
	ATTR_DIM = 2,
	ATTR_BLINK = 4,
	ATTR_REVERSE = 8,
	ATTR_HIDDEN = 0x10,
	ATTR_ITALICS = 0x20,
	ATTR_STRIKE = 0x40,
	ATTR_OVERLINE = 0x80,
	ATTR_UNDERLINE = 0x100, /* of any style */
	SGR_FG = 38,
	SGR_BG = 48,
	SGR_US = 58, /* the colour of the underline is no part of the comparison */
};

/* The pen in one number: its attributes and these. */
#define PEN_FG 0x10000u
#define PEN_BG 0x20000u
#define SGR_MORE 0x80000000u /* parameters of its own follow */

static void
sgr_colour(struct term_pen *pen, int which, bool set)
{
	if (which == SGR_FG)
		pen->fg = set;
	else if (which == SGR_BG)
		pen->bg = set;
}

static bool
sgr_rgb(struct term_pen *pen, int which, int r, int g, int b)
{
	if (r == -1 || r > 255 || g == -1 || g > 255 || b == -1 || b > 255)
		return false;
	sgr_colour(pen, which, true);
	return true;
}

/* Up to seven numbers between colons, -1 for a missing one; 0: malformed. */
static unsigned
sgr_split_colons(const char *s, int *n, unsigned max)
{
	unsigned i = 0;
	long v;
	char *end;

	for (;;) {
		if (*s == ':' || *s == '\0') {
			n[i] = -1;
			end = (char *)s;
		} else {
			v = strtol(s, &end, 10);
			if (v > 0x7fffffff)
				return 0;
			n[i] = (int)v;
		}
		if (++i == max)
			return 0;
		if (*end == '\0')
			return i;
		s = end + 1;
	}
}

/* One parameter of the form 4:3, 38:5:n or 38:2:...; the text ends at NUL. */
static void
sgr_colons(struct term_pen *pen, const char *s)
{
	int v[8];
	unsigned n, i;

	memset(v, -1, sizeof(v));
	n = sgr_split_colons(s, v, 8);
	if (n == 2 && v[0] == 4) {
		if (v[1] == 0)
			pen->attr &= (uint16_t)~ATTR_UNDERLINE;
		else if (v[1] >= 1 && v[1] <= 5)
			pen->attr |= ATTR_UNDERLINE;
		return;
	}
	if (n < 3 || (v[0] != SGR_FG && v[0] != SGR_BG && v[0] != SGR_US))
		return;
	if (v[1] == 2) {
		i = n == 5 ? 2 : 3;
		if (n >= i + 3)
			(void)sgr_rgb(pen, v[0], v[i], v[i + 1], v[i + 2]);
	} else if (v[1] == 5) {
		sgr_colour(pen, v[0], v[2] != -1 && v[2] <= 255);
	}
}

/* 38;5;n and 38;2;r;g;b. Returns the parameters consumed after the first. */
static unsigned
sgr_extended(const struct hr_term *t, struct term_pen *pen, unsigned i, int which)
{
	int n;

	switch (term_arg(t, i + 1, 0, -1)) {
	case 2:
		if (sgr_rgb(pen, which, term_arg(t, i + 2, 0, -1), term_arg(t, i + 3, 0, -1),
			term_arg(t, i + 4, 0, -1)))
			return 4;
		return 1;
	case 5:
		n = term_arg(t, i + 2, 0, -1);
		sgr_colour(pen, which, n != -1 && n <= 255);
		return 2;
	default: return 1;
	}
}

/* What a number alone does to the pen. */
static const struct {
	uint32_t clear, set;
} sgr_effect[] = {
    [0] = {UINT32_MAX, 0},
    [1] = {0, ATTR_BRIGHT},
    [2] = {0, ATTR_DIM},
    [3] = {0, ATTR_ITALICS},
    [4] = {0, ATTR_UNDERLINE},
    [5 ... 6] = {0, ATTR_BLINK},
    [7] = {0, ATTR_REVERSE},
    [8] = {0, ATTR_HIDDEN},
    [9] = {0, ATTR_STRIKE},
    [21] = {0, ATTR_UNDERLINE},
    [22] = {ATTR_BRIGHT | ATTR_DIM, 0},
    [23] = {ATTR_ITALICS, 0},
    [24] = {ATTR_UNDERLINE, 0},
    [25] = {ATTR_BLINK, 0},
    [27] = {ATTR_REVERSE, 0},
    [28] = {ATTR_HIDDEN, 0},
    [29] = {ATTR_STRIKE, 0},
    [30 ... 37] = {0, PEN_FG},
    [SGR_FG] = {0, SGR_MORE | PEN_FG},
    [39] = {PEN_FG, 0},
    [40 ... 47] = {0, PEN_BG},
    [SGR_BG] = {0, SGR_MORE | PEN_BG},
    [49] = {PEN_BG, 0},
    [53] = {0, ATTR_OVERLINE},
    [55] = {ATTR_OVERLINE, 0},
    [SGR_US] = {0, SGR_MORE},
    [90 ... 97] = {0, PEN_FG},
    [100 ... 107] = {0, PEN_BG},
};

enum { SGR_EFFECTS = sizeof(sgr_effect) / sizeof(sgr_effect[0]) };

static inline uint32_t
pen_pack(const struct term_pen *pen)
{
	return pen->attr | (pen->fg ? PEN_FG : 0) | (pen->bg ? PEN_BG : 0);
}

static inline void
pen_unpack(struct term_pen *pen, uint32_t bits)
{
	pen->attr = (uint16_t)bits;
	pen->fg = (bits & PEN_FG) != 0;
	pen->bg = (bits & PEN_BG) != 0;
}

static void
sgr_one(struct term_pen *pen, int n)
{
	if (n >= 0 && n < SGR_EFFECTS)
		pen_unpack(pen, (pen_pack(pen) & ~sgr_effect[n].clear) | sgr_effect[n].set);
}

/* The length of ";5;n" and what it does to the pen: one of 256 colours; 0: it is something else. */
static size_t
sgr_indexed(const uint8_t *b, size_t len, uint32_t which, uint32_t *pen)
{
	unsigned v = 0, digit;
	size_t i;

	if (len < 5 || b[0] != ';' || b[1] != '5' || b[2] != ';')
		return 0;
	for (i = 3; i < len && i < 6 && (digit = (unsigned)b[i] - '0') <= 9; i++)
		v = v * 10 + digit;
	if (i == 3 || i == len || v > 255)
		return 0;
	*pen |= which;
	return i;
}

/* See term_sgr_plain(). *io_pen is a packed one. */
static inline ssize_t
sgr_plain(uint32_t *io_pen, const uint8_t *b, size_t len)
{
	uint32_t pen = *io_pen, set;
	unsigned v = 0, digit;
	size_t i, n;

	for (i = 0; i < len && v < SGR_EFFECTS; i++) {
		digit = (unsigned)b[i] - '0';
		if (digit <= 9) {
			v = v * 10 + digit;
			continue;
		}
		set = sgr_effect[v].set;
		if ((set & SGR_MORE) != 0) {
			n = sgr_indexed(b + i, len - i, set & ~SGR_MORE, &pen);
			if (n == 0)
				return 0;
			i += n;
		} else {
			pen = (pen & ~sgr_effect[v].clear) | set;
		}
		if (b[i] == 'm') {
			*io_pen = pen;
			return (ssize_t)i + 1;
		}
		if (b[i] != ';')
			return -1;
		v = 0;
	}
	return 0;
}

ssize_t
term_sgr_plain(struct hr_term *t, const uint8_t *b, size_t len)
{
	uint32_t pen = pen_pack(&t->pen);
	ssize_t n = sgr_plain(&pen, b, len);

	if (n > 0)
		pen_unpack(&t->pen, pen);
	return n;
}

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

size_t
term_put_coloured(struct hr_term *t, const uint8_t *b, size_t len)
{
	struct term_row *r = row_to_append(t);
	uint32_t pen = pen_pack(&t->pen);
	size_t i = 0, n, room;
	ssize_t s;
	int last = -1;

	if (r == NULL)
		return 0;
	room = term_row_room(r);
	if (room > t->cols)
		room = t->cols;
	while (i < len) {
		if (b[i] == TERM_ESC) {
			n = len - i < TERM_SGR_REACH ? len - i : TERM_SGR_REACH;
			if (n < 3 || b[i + 1] != '[')
				break;
			/* compilers and grep say EL at each change; nothing is behind the cursor */
			s = b[i + 2] == 'K' && r->len > 0 && (pen & PEN_BG) == 0
				? 1
				: sgr_plain(&pen, b + i + 2, n - 2);
			if (s <= 0)
				break;
			i += (size_t)s + 2;
			last = -1;
			continue;
		}
		n = term_ascii_run(b + i, len - i);
		if (n == 0 || n > room - r->len)
			break;
		term_row_append(t, r, b + i, (unsigned)n);
		i += n;
		last = b[i - 1];
	}
	if (i == 0)
		return 0;
	t->cx = r->len;
	pen_unpack(&t->pen, pen);
	t->parser.last = last;
	t->parser.utf8_want = 0; /* it began with text */
	return i;
}

void
term_sgr(struct hr_term *t)
{
	const struct term_parser *p = &t->parser;
	unsigned i;
	int n;

	if (p->args == 0)
		memset(&t->pen, 0, sizeof(t->pen));
	for (i = 0; i < p->args; i++) {
		if (p->arg[i] == PARAM_TEXT) {
			sgr_colons(&t->pen, p->param + p->arg_at[i]);
			continue;
		}
		n = term_arg(t, i, 0, 0);
		if (n == SGR_FG || n == SGR_BG || n == SGR_US)
			i += sgr_extended(t, &t->pen, i, n);
		else
			sgr_one(&t->pen, n);
	}
}
