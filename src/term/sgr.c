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

static void
sgr_one(struct term_pen *pen, int n)
{
	static const struct {
		uint16_t set, clear;
	} table[] = {
	    [1] = {ATTR_BRIGHT, 0},
	    [2] = {ATTR_DIM, 0},
	    [3] = {ATTR_ITALICS, 0},
	    [4] = {ATTR_UNDERLINE, 0},
	    [5] = {ATTR_BLINK, 0},
	    [6] = {ATTR_BLINK, 0},
	    [7] = {ATTR_REVERSE, 0},
	    [8] = {ATTR_HIDDEN, 0},
	    [9] = {ATTR_STRIKE, 0},
	    [21] = {ATTR_UNDERLINE, 0},
	    [22] = {0, ATTR_BRIGHT | ATTR_DIM},
	    [23] = {0, ATTR_ITALICS},
	    [24] = {0, ATTR_UNDERLINE},
	    [25] = {0, ATTR_BLINK},
	    [27] = {0, ATTR_REVERSE},
	    [28] = {0, ATTR_HIDDEN},
	    [29] = {0, ATTR_STRIKE},
	    [53] = {ATTR_OVERLINE, 0},
	    [55] = {0, ATTR_OVERLINE},
	};

	if ((n >= 30 && n <= 37) || (n >= 90 && n <= 97)) {
		pen->fg = true;
	} else if ((n >= 40 && n <= 47) || (n >= 100 && n <= 107)) {
		pen->bg = true;
	} else if (n == 0) {
		memset(pen, 0, sizeof(*pen));
	} else if (n == 39) {
		pen->fg = false;
	} else if (n == 49) {
		pen->bg = false;
	} else if (n > 0 && (size_t)n < sizeof(table) / sizeof(table[0])) {
		pen->attr = (uint16_t)((pen->attr | table[n].set) & ~table[n].clear);
	}
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
