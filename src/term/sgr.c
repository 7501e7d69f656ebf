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

static void
sgr_one(struct term_pen *pen, int n)
{
	if (n >= 0 && n < SGR_EFFECTS)
		term_pen_unpack(
		    pen, (term_pen_pack(pen) & ~sgr_effect[n].clear) | sgr_effect[n].set);
}

/* The length of ";5;n", one of 256 colours, or ";2;r;g;b"; 0: it is something else. */
static size_t
sgr_colour_length(const uint8_t *b, size_t len)
{
	unsigned v, digit, numbers;
	size_t i, start;

	if (len < 5 || b[0] != ';' || b[2] != ';' || (b[1] != '5' && b[1] != '2'))
		return 0;
	for (i = 2, numbers = b[1] == '5' ? 1 : 3; numbers > 0; numbers--) {
		if (i == len || b[i] != ';')
			return 0;
		start = ++i;
		for (v = 0; i < len && i < start + 3 && (digit = (unsigned)b[i] - '0') <= 9; i++)
			v = v * 10 + digit;
		if (i == start || v > 255)
			return 0;
	}
	return i < len ? i : 0;
}

/* What the parameters do to any pen: (pen & keep) | set. Else as term_sgr_plain(). */
static ssize_t
sgr_masks(const uint8_t *b, size_t len, uint32_t *ret_keep, uint32_t *ret_set)
{
	uint32_t keep = UINT32_MAX, set = 0, more;
	unsigned v = 0, digit;
	size_t i, n;

	for (i = 0; i < len && v < SGR_EFFECTS; i++) {
		digit = (unsigned)b[i] - '0';
		if (digit <= 9) {
			v = v * 10 + digit;
			continue;
		}
		more = sgr_effect[v].set;
		if ((more & SGR_MORE) != 0) {
			n = sgr_colour_length(b + i, len - i);
			if (n == 0)
				return 0;
			i += n;
			set |= more & ~SGR_MORE;
		} else {
			keep &= ~sgr_effect[v].clear;
			set = (set & ~sgr_effect[v].clear) | more;
		}
		if (b[i] == 'm') {
			*ret_keep = keep;
			*ret_set = set;
			return (ssize_t)i + 1;
		}
		if (b[i] != ';')
			return -1;
		v = 0;
	}
	return 0;
}

ssize_t
term_sgr_learn(
    struct term_sgr_known *k, const uint64_t *key, uint32_t *io_pen, const uint8_t *b, size_t len)
{
	uint32_t keep, set;
	ssize_t n = sgr_masks(b, len, &keep, &set);

	if (n <= 0)
		return n;
	*io_pen = (*io_pen & keep) | set;
	if (k != NULL)
		*k = (struct term_sgr_known){{key[0], key[1]}, keep, set};
	return n;
}

ssize_t
term_sgr_plain(struct hr_term *t, const uint8_t *b, size_t len)
{
	uint32_t pen = term_pen_pack(&t->pen);
	ssize_t n = term_sgr_quick(t, &pen, b, len);

	if (n > 0)
		term_pen_unpack(&t->pen, pen);
	return n;
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
