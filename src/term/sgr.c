/* Handles SGR as far as the text depends on it: default attributes and colours decide which blanks
 * are not stored (put.c) and which rows count as allocated (grid.c). */
#include "config.h"

#include "term/term_int.h"

#include <limits.h>
#include <stdint.h>
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
	ATTR_UNDERLINE = 0x100, /* underline of any style */
	SGR_FG = 38,
	SGR_BG = 48,
	SGR_US = 58, /* the underline's colour is not compared */
};

static void
sgr_colour(uint32_t *pen, int which, bool set)
{
	uint32_t bit = which == SGR_FG ? PEN_FG : which == SGR_BG ? PEN_BG : 0;

	*pen = set ? *pen | bit : *pen & ~bit;
}

static bool
sgr_rgb(uint32_t *pen, int which, int r, int g, int b)
{
	if (r == -1 || r > 255 || g == -1 || g > 255 || b == -1 || b > 255)
		return false;
	sgr_colour(pen, which, true);
	return true;
}

/* Parses up to seven numbers between colons, -1 for a missing one. Returns 0 if malformed. */
static unsigned
sgr_split_colons(const char *s, int *n, unsigned max)
{
	unsigned i = 0;
	int64_t v;

	for (;;) {
		v = -1;
		/* The loop ends at the sequence's last byte: no other byte can follow. */
		for (; *s >= '0' && *s <= '9'; s++) {
			v = (v < 0 ? 0 : v * 10) + (*s - '0');
			if (v > INT_MAX)
				return 0;
		}
		n[i] = (int)v;
		if (++i == max)
			return 0;
		if (*s++ != ':')
			return i;
	}
}

/* Parses one parameter of the form 4:3, 38:5:n or 38:2:...; the first other byte ends it. */
static void
sgr_colons(uint32_t *pen, const char *s)
{
	int v[8];
	unsigned n, i;

	memset(v, -1, sizeof(v));
	n = sgr_split_colons(s, v, 8);
	if (n == 2 && v[0] == 4) {
		if (v[1] == 0)
			*pen &= ~(uint32_t)ATTR_UNDERLINE;
		else if (v[1] >= 1 && v[1] <= 5)
			*pen |= ATTR_UNDERLINE;
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

/* Parses 38;5;n and 38;2;r;g;b. Returns the parameters consumed after the first. */
static unsigned
sgr_extended(const struct hr_term *t, uint32_t *pen, unsigned i, int which)
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

/* How a single number changes the pen. */
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
    [39] = {PEN_FG, 0},
    [40 ... 47] = {0, PEN_BG},
    [49] = {PEN_BG, 0},
    [53] = {0, ATTR_OVERLINE},
    [55] = {ATTR_OVERLINE, 0},
    [90 ... 97] = {0, PEN_FG},
    [100 ... 107] = {0, PEN_BG},
};

enum { SGR_EFFECTS = sizeof(sgr_effect) / sizeof(sgr_effect[0]) };

void
term_sgr(struct hr_term *t)
{
	const struct term_parser *p = &t->parser;
	uint32_t pen = p->args > 0 ? t->pen : 0;
	unsigned i;
	int n;

	for (i = 0; i < p->args; i++) {
		n = p->arg[i] == PARAM_MISSING ? 0 : p->arg[i];
		if (n == PARAM_TEXT)
			sgr_colons(&pen, p->params + p->arg_at[i]);
		else if (n == SGR_FG || n == SGR_BG || n == SGR_US)
			i += sgr_extended(t, &pen, i, n);
		else if (n < SGR_EFFECTS)
			pen = (pen & ~sgr_effect[n].clear) | sgr_effect[n].set;
	}
	t->pen = pen;
}
