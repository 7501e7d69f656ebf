/* Handles escape and control sequences. Parameters are as in tmux: at most 23, each up to INT_MAX,
 * or the sequence is ignored as a whole; one with colons is "-1", which most sequences take for "do
 * nothing". A known sequence clears REP's memory of the last character, an unknown one does not. */
#include "config.h"

#include "term/term_int.h"

#include <limits.h>
#include <string.h>

int
term_arg(const struct hr_term *t, unsigned i, int least, int absent)
{
	int v;

	if (i >= t->parser.args || t->parser.arg[i] == PARAM_MISSING)
		return absent;
	v = t->parser.arg[i];
	if (v == PARAM_TEXT)
		return -1;
	return v < least ? least : v;
}

/* Splits the parameters at the start of s at their semicolons. Returns their length, or -1 if there
 * are too many or a number is too large. */
static ssize_t
csi_split(struct term_parser *p, const char *s, size_t len)
{
	size_t i = 0, start;
	unsigned digit;
	long v;

	p->params = s;
	p->args = 0;
	if (len == 0 || s[0] < '0' || s[0] > ';')
		return 0;
	for (;; i++) {
		start = i;
		for (v = 0; i < len && (digit = (unsigned)s[i] - '0') <= 9; i++)
			if (v <= INT_MAX)
				v = v * 10 + (int)digit;
		if (i == start)
			v = PARAM_MISSING;
		if (i < len && s[i] == ':') {
			v = PARAM_TEXT;
			while (i < len && s[i] >= '0' && s[i] <= ':')
				i++;
		}
		if (v > INT_MAX)
			return -1;
		p->arg_at[p->args] = (uint8_t)start;
		p->arg[p->args] = (int)v;
		if (++p->args == TERM_PARAMS + 1)
			return -1;
		if (i == len || s[i] != ';')
			return (ssize_t)i;
	}
}

/* --- sequences; n is the first parameter, 1 if it is missing or 0, never -1 --- */

static void
csi_ich(struct hr_term *t, int n)
{
	unsigned room = t->cols - t->cx, k = (unsigned)n < room ? (unsigned)n : room;
	struct term_row *r;

	if (k == 0)
		return;
	if (t->cx == t->cols - 1)
		term_grid_clear_part(t, t->cy, t->cx, 1, (t->pen & PEN_BG) != 0);
	else if (k < room && (r = term_grid_write(t, t->cy)) != NULL)
		term_row_insert(t, r, t->cx, k);
}

static void
csi_dch(struct hr_term *t, int n)
{
	unsigned room = t->cols - t->cx, k = (unsigned)n < room ? (unsigned)n : room;
	struct term_row *r;

	if (k == 0)
		return;
	if (k == room)
		term_grid_clear_part(t, t->cy, t->cx, k, (t->pen & PEN_BG) != 0);
	else if ((r = term_grid_write(t, t->cy)) != NULL)
		term_row_delete(t, r, t->cx, k);
}

static void
csi_ech(struct hr_term *t, int n)
{
	unsigned room = t->cols - t->cx;

	term_grid_clear_part(
	    t, t->cy, t->cx, (unsigned)n < room ? (unsigned)n : room, (t->pen & PEN_BG) != 0);
}

static void
csi_cnl(struct hr_term *t, int n)
{
	t->cx = 0;
	term_down(t, n);
}

static void
csi_cpl(struct hr_term *t, int n)
{
	t->cx = 0;
	term_up(t, n);
}

static void
csi_hpa(struct hr_term *t, int n)
{
	term_move(t, n - 1, -1, true);
}

static void
csi_vpa(struct hr_term *t, int n)
{
	term_move(t, -1, n - 1, true);
}

static void
csi_cup(struct hr_term *t, int n)
{
	int m = term_arg(t, 1, 1, 1);

	if (m != -1)
		term_move(t, m - 1, n - 1, true);
}

static void
csi_il(struct hr_term *t, int n)
{
	term_grid_insert_rows(t, t->cy, (unsigned)n, (t->pen & PEN_BG) != 0);
}

static void
csi_dl(struct hr_term *t, int n)
{
	term_grid_delete_rows(t, t->cy, (unsigned)n, (t->pen & PEN_BG) != 0);
}

static void
csi_su(struct hr_term *t, int n)
{
	term_grid_scroll_up(t, (unsigned)n, (t->pen & PEN_BG) != 0);
}

static void
csi_sd(struct hr_term *t, int n)
{
	term_grid_scroll_down(t, (unsigned)n, (t->pen & PEN_BG) != 0);
}

static void
csi_stbm(struct hr_term *t, int n)
{
	int m = term_arg(t, 1, 1, (int)t->rows);

	if (m != -1)
		term_region(t, (unsigned)n - 1, (unsigned)m - 1);
}

static void
csi_rep(struct hr_term *t, int n)
{
	unsigned room = t->cols - t->cx, k = (unsigned)n < room ? (unsigned)n : room;
	uint8_t c = (uint8_t)t->parser.last;

	if (t->parser.last == -1)
		return;
	t->parser.utf8_want = 0;
	for (; k > 0; k--)
		term_put_ascii(t, &c, 1);
}

/* --- sequences; n is the first parameter, 0 if it is missing, never -1 --- */

static void
csi_ed(struct hr_term *t, int n)
{
	if (n != 3 || term_arg(t, 1, 0, 0) == 0)
		term_erase_screen(t, n);
}

static void
csi_tbc(struct hr_term *t, int n)
{
	if (n == 0 && t->cx < t->cols)
		t->tabs[t->cx / 8] &= (uint8_t) ~(1u << t->cx % 8);
	else if (n == 3)
		memset(t->tabs, 0, sizeof(t->tabs));
}

static void
csi_dsr(struct hr_term *t, int n)
{
	if (n == 5)
		term_reply(t, "\033[0n");
	else if (n == 6)
		term_reply(t, "\033[%u;%uR", t->cy + 1, t->cx + 1);
}

static void
csi_da(struct hr_term *t, int n)
{
	if (n == 0)
		term_reply(t, "\033[?1;2c");
}

static void
csi_da2(struct hr_term *t, int n)
{
	if (n == 0)
		term_reply(t, "\033[>84;0;0c");
}

/* Programs choose their sequences by this answer; it names the imitated terminal. */
static void
csi_xda(struct hr_term *t, int n)
{
	if (n == 0)
		term_reply(t, "\033P>|tmux 3.3a\033\\");
}

/* --- sequences with parameters of their own --- */

static void
csi_modes(struct hr_term *t, bool on)
{
	unsigned i;

	for (i = 0; i < t->parser.args; i++)
		if (term_arg(t, i, 0, -1) == 4)
			t->insert = on;
}

static void
csi_mode_private(struct hr_term *t, int mode, bool on)
{
	switch (mode) {
	case 1: t->app_cursor = on; break;
	case 3: /* 80 or 132 columns: clears the screen and changes no size */
		term_move(t, 0, 0, true);
		term_grid_clear_all(t, (t->pen & PEN_BG) != 0);
		break;
	case 6:
		t->origin = on;
		term_move(t, 0, 0, true);
		break;
	case 7: t->wrap = on; break;
	case 47:
	case 1047:
	case 1049:
		if (on)
			term_alternate_on(t, mode == 1049);
		else
			term_alternate_off(t, mode == 1049);
		break;
	case 2004: t->bracketed_paste = on; break;
	default: break;
	}
}

static void
csi_modes_private(struct hr_term *t, bool on)
{
	unsigned i;

	for (i = 0; i < t->parser.args; i++)
		csi_mode_private(t, term_arg(t, i, 0, -1), on);
}

/* XTWINOPS: only the size is answered; the others may have parameters. */
static void
csi_winops(struct hr_term *t)
{
	unsigned i;
	int n;

	for (i = 0; (n = term_arg(t, i, 0, -1)) != -1; i++) {
		switch (n) {
		case 3:
		case 4:
		case 8:
			if (term_arg(t, ++i, 0, -1) == -1)
				return;
			/* fall through */
		case 9:
		case 10:
		case 22:
		case 23:
			if (term_arg(t, ++i, 0, -1) == -1)
				return;
			break;
		case 18: term_reply(t, "\033[8;%u;%ut", t->cols, t->rows); break;
		default: break;
		}
	}
}

enum {
	CSI_PRIVATE = '?' << 8,
	CSI_GREATER = '>' << 8,
	CSI_SPACE = ' ' << 8,
};

/* Sequences of the first kinds, with the minimum of their first parameter. */
static const struct csi_op {
	int key; /* final and intermediate character */
	int least;
	void (*run)(struct hr_term *t, int n);
} csi_ops[] = {
    {'m', 0, NULL}, /* the most frequent one comes first */
    {'@', 1, csi_ich},
    {'A', 1, term_up},
    {'B', 1, term_down},
    {'C', 1, term_right},
    {'D', 1, term_left},
    {'E', 1, csi_cnl},
    {'F', 1, csi_cpl},
    {'G', 1, csi_hpa},
    {'H', 1, csi_cup},
    {'J', 0, csi_ed},
    {'K', 0, term_erase_line},
    {'L', 1, csi_il},
    {'M', 1, csi_dl},
    {'P', 1, csi_dch},
    {'S', 1, csi_su},
    {'T', 1, csi_sd},
    {'X', 1, csi_ech},
    {'Z', 1, term_back_tab},
    {'`', 1, csi_hpa},
    {'b', 1, csi_rep},
    {'c', 0, csi_da},
    {'c' | CSI_GREATER, 0, csi_da2},
    {'d', 1, csi_vpa},
    {'f', 1, csi_cup},
    {'g', 0, csi_tbc},
    {'n', 0, csi_dsr},
    {'q' | CSI_GREATER, 0, csi_xda},
    {'r', 1, csi_stbm},
};

/* Performs the sequences of the last kind. Returns false if unknown. */
static bool
csi_other(struct hr_term *t, int key)
{
	switch (key) {
	case 'm': term_sgr(t); return true;
	case 'h': csi_modes(t, true); return true;
	case 'l': csi_modes(t, false); return true;
	case 'h' | CSI_PRIVATE: csi_modes_private(t, true); return true;
	case 'l' | CSI_PRIVATE: csi_modes_private(t, false); return true;
	case 's': term_save(t); return true;
	case 'u': term_restore(t); return true;
	case 't': csi_winops(t); return true;
	case 'm' | CSI_GREATER: /* sets extended keys */
	case 'n' | CSI_GREATER:
	case 'q' | CSI_SPACE: /* sets the cursor's style */ return true;
	default: return false;
	}
}

static void
csi_run(struct hr_term *t, int key)
{
	const struct csi_op *op = NULL;
	unsigned i;
	int n;

	for (i = 0; i < sizeof(csi_ops) / sizeof(csi_ops[0]) && op == NULL; i++)
		if (csi_ops[i].key == key)
			op = &csi_ops[i];
	if (op == NULL || op->run == NULL) {
		if (!csi_other(t, key))
			return;
	} else if ((n = term_arg(t, 0, op->least, op->least)) != -1) {
		op->run(t, n);
	}
	t->parser.last = -1;
}

void
term_csi(struct hr_term *t, uint8_t final)
{
	struct term_parser *p = &t->parser;

	p->param[p->param_len] = '\0';
	if (csi_split(p, p->param, p->param_len) >= 0 && p->interm_len <= 1)
		csi_run(t, final | (p->interm_len > 0 ? p->interm[0] << 8 : 0));
}

size_t
term_csi_whole(struct hr_term *t, const uint8_t *b, size_t len, uint64_t fed)
{
	size_t reach = len < TERM_PARAM_BYTES + 3 ? len : TERM_PARAM_BYTES + 3, end;
	ssize_t n;

	if (len < 3 || b[1] != '[')
		return 0;
	n = csi_split(&t->parser, (const char *)b + 2, reach - 2);
	if (n < 0)
		return 0;
	end = (size_t)n + 2;
	if (end == reach || b[end] < 0x40 || b[end] >= TERM_DEL)
		return 0;
	t->fed = fed + end;
	csi_run(t, b[end]);
	return end + 1;
}

void
term_esc(struct hr_term *t, uint8_t final)
{
	struct term_parser *p = &t->parser;

	if (p->interm_len > 1)
		return;
	switch (final | (p->interm_len > 0 ? p->interm[0] << 8 : 0)) {
	case '7': term_save(t); break;
	case '8': term_restore(t); break;
	case '=':
	case '>':
	case '\\': break;
	case 'D': term_linefeed(t, false, (t->pen & PEN_BG) != 0); break;
	case 'E':
		t->cx = 0;
		term_linefeed(t, false, (t->pen & PEN_BG) != 0);
		break;
	case 'H':
		if (t->cx < t->cols)
			t->tabs[t->cx / 8] |= (uint8_t)(1u << t->cx % 8);
		break;
	case 'M': term_reverse_index(t); break;
	case 'c': term_full_reset(t); break;
	case '8' | '#' << 8: term_align(t); break;
	case '0' | '(' << 8: t->charset.g0_acs = true; break;
	case 'B' | '(' << 8: t->charset.g0_acs = false; break;
	case '0' | ')' << 8: t->charset.g1_acs = true; break;
	case 'B' | ')' << 8: t->charset.g1_acs = false; break;
	default: return;
	}
	p->last = -1;
}
