/* Parses bytes into characters, controls and sequences: the state machine of tmux's input.c (which
 * is Paul Williams' for DEC terminals, 7 bit, with UTF-8). The end of a feed may cut a sequence
 * anywhere. The contents of strings (OSC, DCS, ...) are dropped: none of them is text. */
#include "config.h"

#include "term/term_int.h"

#include <string.h>

enum {
	CH_BS = 0x08,
	CH_TAB = 0x09,
	CH_LF = 0x0a,
	CH_VT = 0x0b,
	CH_FF = 0x0c,
	CH_CR = 0x0d,
	CH_SO = 0x0e,
	CH_SI = 0x0f,
	CH_CAN = 0x18,
	CH_SUB = 0x1a,
	CH_ESC = TERM_ESC,
	CH_BEL = 0x07,
	CH_DEL = TERM_DEL,
};

static void
parse_c0(struct hr_term *t, uint8_t c)
{
	t->parser.utf8_want = 0; /* the bytes before it are invalid UTF-8 */
	t->parser.last = -1;
	switch (c) {
	case CH_BS: term_backspace(t); break;
	case CH_TAB: term_tab(t); break;
	case CH_LF:
		if (t->lf_is_crlf)
			t->cx = 0;
		/* fall through */
	case CH_VT:
	case CH_FF: term_linefeed(t, false, (t->pen & PEN_BG) != 0); break;
	case CH_CR: t->cx = 0; break;
	case CH_SO: t->charset.shifted = true; break;
	case CH_SI: t->charset.shifted = false; break;
	default: break;
	}
}

/* Decodes strictly: no surrogates, no overlong forms, nothing above U+10FFFF. Returns -1 if
 * invalid. */
static int32_t
parse_codepoint(const uint8_t *b, unsigned n)
{
	static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	int32_t cp = b[0] & (0xff >> (n + 1));
	unsigned i;

	for (i = 1; i < n; i++)
		cp = cp << 6 | (b[i] & 0x3f);
	if (cp < least[n] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return -1;
	return cp;
}

/* Decodes UTF-8. An invalid sequence swallows as many bytes as its first byte announced, unless
 * ASCII or a control comes before; escape sequences may come between its bytes. */
static void
parse_utf8(struct hr_term *t, uint8_t c)
{
	struct term_parser *p = &t->parser;
	int32_t cp;
	int width;

	p->last = -1;
	if (p->utf8_want == 0) {
		p->utf8_have = 0;
		p->utf8_bad = false;
		if (c >= 0xc2 && c <= 0xdf)
			p->utf8_want = 2;
		else if (c >= 0xe0 && c <= 0xef)
			p->utf8_want = 3;
		else if (c >= 0xf0 && c <= 0xf4)
			p->utf8_want = 4;
		else
			return;
	} else if ((c & 0xc0) != 0x80) {
		p->utf8_bad = true;
	}
	p->utf8[p->utf8_have++] = c;
	if (p->utf8_have < p->utf8_want)
		return;
	cp = p->utf8_bad ? -1 : parse_codepoint(p->utf8, p->utf8_want);
	p->utf8_want = 0;
	if (cp >= 0 && (width = hr_term_width((uint32_t)cp)) >= 0)
		term_put(t, (uint32_t)cp, width);
}

static void
parse_clear(struct term_parser *p)
{
	p->discard = false;
	p->interm_len = 0;
	p->param_len = 0;
}

static void
parse_interm(struct term_parser *p, uint8_t c)
{
	if (p->interm_len == sizeof(p->interm))
		p->discard = true;
	else
		p->interm[p->interm_len++] = (char)c;
}

static void
parse_param(struct term_parser *p, uint8_t c)
{
	if (p->param_len == TERM_PARAM_BYTES)
		p->discard = true;
	else
		p->param[p->param_len++] = (char)c;
}

static void
parse_string(struct term_parser *p, enum term_state state)
{
	parse_clear(p);
	p->last = -1;
	p->state = state;
}

static void
parse_esc(struct hr_term *t, uint8_t c)
{
	struct term_parser *p = &t->parser;

	if (c < 0x30) {
		parse_interm(p, c);
		p->state = ST_ESC_INTERM;
		return;
	}
	if (p->state == ST_ESC) {
		switch (c) {
		case '[':
			parse_clear(p);
			p->state = ST_CSI_ENTER;
			return;
		case ']': parse_string(p, ST_OSC); return;
		case 'P': parse_string(p, ST_DCS_ENTER); return;
		case 'X': /* SOS */
		case '^': /* PM */
		case '_': /* APC */
		case 'k': /* title */ parse_string(p, ST_STRING); return;
		default: break;
		}
	}
	p->state = ST_GROUND;
	if (!p->discard)
		term_esc(t, c);
}

static void
parse_csi(struct hr_term *t, uint8_t c)
{
	struct term_parser *p = &t->parser;

	if (c >= 0x40) {
		enum term_state was = p->state;

		p->state = ST_GROUND;
		if (was != ST_CSI_IGNORE && !p->discard)
			term_csi(t, c);
	} else if (p->state == ST_CSI_IGNORE) {
		return;
	} else if (c < 0x30) {
		parse_interm(p, c);
		p->state = ST_CSI_INTERM;
	} else if (p->state == ST_CSI_INTERM || (c >= 0x3c && p->state == ST_CSI_PARAM)) {
		p->state = ST_CSI_IGNORE;
	} else if (c >= 0x3c) {
		parse_interm(p, c);
		p->state = ST_CSI_PARAM;
	} else {
		parse_param(p, c);
		p->state = ST_CSI_PARAM;
	}
}

/* Parses the start of a DCS only to know whether it is well formed, since only ESC \ ends the data
 * of a well formed one. */
static void
parse_dcs(struct term_parser *p, uint8_t c)
{
	if (c >= 0x40)
		p->state = ST_DCS_DATA;
	else if (c < 0x30)
		p->state = ST_DCS_INTERM;
	else if (p->state == ST_DCS_INTERM || c == ':' || (c >= 0x3c && p->state == ST_DCS_PARAM))
		p->state = ST_DCS_IGNORE;
	else
		p->state = ST_DCS_PARAM;
}

/* Skips bytes in states in which only the end matters. Returns their number. */
static size_t
parse_skip(struct term_parser *p, const uint8_t *b, size_t len)
{
	const uint8_t *esc;
	size_t i;

	if (p->state == ST_DCS_DATA) {
		esc = memchr(b, CH_ESC, len);
		if (esc == NULL)
			return len;
		p->state = ST_DCS_ESC;
		return (size_t)(esc - b) + 1;
	}
	for (i = 0; i < len; i++)
		if (b[i] == CH_ESC || b[i] == CH_CAN || b[i] == CH_SUB ||
		    (b[i] == CH_BEL && p->state == ST_OSC))
			break;
	return i;
}

static void
parse_byte(struct hr_term *t, uint8_t c)
{
	struct term_parser *p = &t->parser;

	if (p->state == ST_DCS_ESC) {
		p->state = c == '\\' ? ST_GROUND : ST_DCS_DATA;
		return;
	}
	if (c == CH_ESC) {
		parse_clear(p);
		p->state = ST_ESC;
		return;
	}
	if (c == CH_CAN || c == CH_SUB) {
		parse_c0(t, c);
		p->state = ST_GROUND;
		return;
	}
	if (p->state >= ST_DCS_ENTER) {
		if (p->state == ST_OSC && c == CH_BEL)
			p->state = ST_GROUND;
		else if (p->state <= ST_DCS_INTERM && c >= 0x20 && c < CH_DEL)
			parse_dcs(p, c);
		return;
	}
	if (c < 0x20)
		parse_c0(t, c);
	else if (p->state == ST_GROUND && c > CH_DEL)
		parse_utf8(t, c);
	else if (c >= CH_DEL)
		return;
	else if (p->state <= ST_ESC_INTERM)
		parse_esc(t, c);
	else
		parse_csi(t, c);
}

void
term_parse(struct hr_term *t, const uint8_t *b, size_t len)
{
	struct term_parser *p = &t->parser;
	uint64_t before = t->fed;
	size_t i = 0, n;

	while (i < len) {
		if (p->state == ST_GROUND && t->cx == 0 && b[i] != CH_ESC && b[i] != CH_LF &&
		    t->cy == t->rows - 1 && (n = term_flood(t, b + i, len - i)) > 0) {
			p->utf8_want = 0;
			p->last = -1;
			i += n;
		} else if (p->state == ST_GROUND && b[i] >= 0x20 && b[i] < CH_DEL) {
			n = term_ascii_run(b + i, len - i);
			t->fed = before + i;
			p->utf8_want = 0;
			p->last = b[i + n - 1];
			term_put_ascii(t, b + i, n);
			i += n;
		} else if (p->state == ST_GROUND && b[i] == CH_LF) {
			p->utf8_want = 0;
			p->last = -1;
			if (t->lf_is_crlf)
				t->cx = 0;
			term_linefeed(t, false, (t->pen & PEN_BG) != 0);
			i++;
		} else if (p->state == ST_GROUND && b[i] == CH_ESC &&
			   (n = term_csi_whole(t, b + i, len - i, before + i)) > 0) {
			i += n;
		} else if (p->state == ST_DCS_DATA || p->state >= ST_DCS_IGNORE) {
			n = parse_skip(p, b + i, len - i);
			i += n;
			if (n == 0)
				parse_byte(t, b[i++]);
		} else {
			t->fed = before + i;
			parse_byte(t, b[i++]);
		}
	}
	t->fed = before + len;
}
