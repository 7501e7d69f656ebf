/* Parses ECMA-48 sequences, but only to find their ends. */
#include "config.h"

#include "base/text/tame.h"

#include <string.h>

#include "base/text/utf8.h"

static void
put(struct hr_tame *t, struct hr_buf *b, const char *p, size_t len)
{
	if (t->cr && t->in_line)
		hr_buf_addc(b, '\r');
	t->cr = false;
	hr_buf_add(b, p, len);
	t->in_line = true;
}

/* Appends "ESC [ 1;31 m" if only numbers stand between the bracket and the final letter. */
static void
put_csi(struct hr_tame *t, struct hr_buf *b, char last)
{
	bool passes = last == 'm' ? t->colours : t->terminal && strchr("ABCDEFGJK", last) != NULL;
	unsigned i;

	for (i = 0; i < t->n; i++)
		passes = passes && strchr("0123456789;:", t->held[i]) != NULL;
	if (!passes || t->n == sizeof(t->held))
		return;
	put(t, b, "\033[", 2);
	hr_buf_add(b, t->held, t->n);
	hr_buf_addc(b, last);
	if (last == 'm') {
		t->painted = false; /* "0" or no number resets the colours */
		for (i = 0; i < t->n; i++)
			t->painted = t->painted || t->held[i] != '0';
	}
}

/* Collects the bytes of one character. */
static void
put_character(struct hr_tame *t, struct hr_buf *b, char c)
{
	static const char unknown[] = "\357\277\275"; /* U+FFFD in UTF-8 */
	const unsigned char lead = (unsigned char)(t->n > 0 ? t->held[0] : c);
	unsigned want = lead < 0xC2 || lead > 0xF4 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
	size_t len;
	int32_t cp;

	t->held[t->n++] = c;
	if (t->n < want)
		return;
	cp = hr_utf8_next(t->held, t->held + t->n, &len);
	if (cp < 0 || len != t->n || hr_utf8_is_surrogate(cp))
		put(t, b, unknown, 3);
	else if (cp >= 0xA0) /* C1 controls would act as ESC and a second byte */
		put(t, b, t->held, t->n);
	t->n = 0;
}

static void
put_text(struct hr_tame *t, struct hr_buf *b, char c)
{
	const unsigned char u = (unsigned char)c;

	if (t->n > 0 && (u & 0xC0) != 0x80) { /* the held bytes do not form a character */
		t->n = 0;
		put(t, b, "\357\277\275", 3);
	}
	if (u >= 0x80) {
		put_character(t, b, c);
	} else if (c == '\n') { /* the viewer's terminal adds the CR */
		t->cr = t->in_line = false;
		hr_buf_addc(b, '\n');
	} else if (c == '\r') {
		t->cr = true;
	} else if (c == '\033') {
		t->part = HR_TAME_ESC;
	} else if ((u >= ' ' && u != 0x7F) || c == '\t' || (c == '\b' && t->terminal)) {
		put(t, b, &c, 1);
	}
}

static void
after_escape(struct hr_tame *t, char c)
{
	t->n = 0;
	if (c == '[')
		t->part = HR_TAME_CSI;
	else if (c != '\0' && strchr("]PX^_", c) != NULL)
		t->part = HR_TAME_STRING;
	else if (c >= ' ' && c <= '/')
		t->part = HR_TAME_CHARSET;
	else if (c != '\033')
		t->part = HR_TAME_TEXT;
}

void
hr_tame_feed(struct hr_tame *t, struct hr_buf *b, const char *p, size_t len)
{
	const char *end;

	for (end = p + len; p < end; p++) {
		const bool control = (unsigned char)*p < ' ';

		if (t->part == HR_TAME_TEXT) {
			put_text(t, b, *p);
		} else if (*p == '\033') {
			t->part = HR_TAME_ESC;
		} else if (control && (t->part != HR_TAME_STRING || *p == '\n' || *p == '\a')) {
			/* a newline ends an unfinished sequence, so that a program cannot hide the
			 * next line */
			t->part = HR_TAME_TEXT;
			t->n = 0;
			put_text(t, b, *p);
		} else if (t->part == HR_TAME_ESC) {
			after_escape(t, *p);
		} else if (t->part == HR_TAME_CSI && (unsigned char)*p >= '@') {
			put_csi(t, b, *p);
			t->part = HR_TAME_TEXT;
			t->n = 0;
		} else if (t->part == HR_TAME_CSI && t->n < sizeof(t->held)) {
			t->held[t->n++] = *p;
		} else if (t->part == HR_TAME_CHARSET && *p >= '0') {
			t->part = HR_TAME_TEXT;
		}
	}
}

void
hr_tame_end(struct hr_tame *t, struct hr_buf *b)
{
	bool torn = t->part == HR_TAME_TEXT && t->n > 0;

	t->part = HR_TAME_TEXT;
	t->n = 0;
	if (torn)
		put(t, b, "\357\277\275", 3);
	if (t->painted)
		put(t, b, "\033[0m", 4);
	t->painted = false;
	if (t->in_line)
		hr_buf_adds(b, "\n");
	t->in_line = t->cr = false;
}
