/* Decodes escapes, with the error texts of Python 3.11. */
#include "config.h"

#include "proto/python/escape.h"

#include <string.h>

#include "base/text/percent.h"
#include "base/text/utf8.h"

struct literal {
	const char *p, *end; /* the text inside the quotes */
	size_t pos;          /* Python's position count: see put_plain() */
	unsigned line;
	hr_pynamed_fn *named;
	struct hr_buf *out, *why;
};

static void
say_escape(struct literal *l, size_t from, size_t to, const char *what)
{
	hr_buf_addf(l->why,
	    "SyntaxError: (unicode error) 'unicodeescape' codec can't decode bytes in "
	    "position %zu-%zu: %s (<unknown>, line ",
	    from, to, what);
}

/* Counts a non-ASCII character as \UXXXXXXXX, since that is how Python's decoder of escapes sees
 * it. */
static void
put_plain(struct literal *l)
{
	size_t n;
	int32_t cp = hr_utf8_next(l->p, l->end, &n);

	hr_buf_add(l->out, l->p, n);
	l->pos += cp < 0x80 ? 1 : 10;
	l->p += n;
}

/* Decodes \xXX, \uXXXX, \UXXXXXXXX; l->p is after the letter. */
static int
put_hex(struct literal *l, char letter)
{
	static const char *const cut[] = {
	    "truncated \\xXX escape", "truncated \\uXXXX escape", "truncated \\UXXXXXXXX escape"};
	int want = letter == 'x' ? 2 : letter == 'u' ? 4 : 8, n;
	size_t from = l->pos;
	uint32_t cp = 0;

	for (n = 0; n < want && l->p < l->end && hr_hex_value(*l->p) >= 0; n++)
		cp = cp << 4 | (uint32_t)hr_hex_value(*l->p++);
	l->pos += 2 + (size_t)n;
	if (n == want && cp <= 0x10FFFF) {
		hr_utf8_add(l->out, cp);
		return 0;
	}
	say_escape(l, from, l->pos - 1,
	    n == want ? "illegal Unicode character"
		      : cut[want == 2   ? 0
			    : want == 4 ? 1
					: 2]);
	return 1;
}

static void
put_octal(struct literal *l)
{
	uint32_t cp = 0;
	int n;

	for (n = 0; n < 3 && l->p < l->end && *l->p >= '0' && *l->p <= '7'; n++)
		cp = cp << 3 | (uint32_t)(*l->p++ - '0');
	l->pos += 1 + (size_t)n;
	hr_utf8_add(l->out, cp);
}

/* Decodes \N{NAME}; l->p is after the letter. */
static int
put_named(struct literal *l)
{
	const char *open = l->p, *close = NULL, *q;
	size_t upto = 2; /* length of \N, and of the name after it */
	int32_t cp;

	if (l->p < l->end && *l->p == '{') {
		close = memchr(l->p, '}', (size_t)(l->end - l->p));
		for (q = l->p; q < (close != NULL ? close : l->end); q++)
			if (((unsigned char)*q & 0xC0) != 0x80)
				upto += (unsigned char)*q < 0x80 ? 1 : 10;
	}
	if (close == NULL || close == open + 1) {
		say_escape(l, l->pos, l->pos + upto - 1, "malformed \\N character escape");
		return 1;
	}
	cp = l->named != NULL ? l->named(open + 1, (size_t)(close - open - 1)) : -1;
	if (cp < 0) {
		say_escape(l, l->pos, l->pos + upto, "unknown Unicode character name");
		return 1;
	}
	hr_utf8_add(l->out, (uint32_t)cp);
	l->p = close + 1;
	l->pos += upto + 1;
	return 0;
}

static int
put_escape(struct literal *l)
{
	static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
	const char *at;
	char c = *++l->p; /* a literal does not end with its backslash */

	if (c == '\n') {
		l->p++;
		l->pos += 2;
		l->line++;
		return 0;
	}
	if (c == 'x' || c == 'u' || c == 'U') {
		l->p++;
		return put_hex(l, c);
	}
	if (c == 'N') {
		l->p++;
		return put_named(l);
	}
	if (c >= '0' && c <= '7') {
		put_octal(l);
		return 0;
	}
	at = c != '\0' ? strchr(from, c) : NULL;
	if (at != NULL) {
		hr_buf_addc(l->out, to[at - from]);
		l->p++;
		l->pos += 2;
		return 0;
	}
	hr_buf_addc(l->out, '\\');
	l->pos += (unsigned char)c < 0x80 ? 1 : 6; /* Python sees the backslash as \u005c there */
	put_plain(l);
	return 0;
}

int
hr_pyescape(struct hr_buf *out, const char *p, size_t len, hr_pynamed_fn *named, struct hr_buf *why)
{
	struct literal l = {
	    .p = p, .end = p + len, .line = 1, .named = named, .out = out, .why = why};
	int bad = 0;

	while (bad == 0 && l.p < l.end) {
		if (*l.p == '\\') {
			bad = put_escape(&l);
		} else {
			l.line += *l.p == '\n';
			put_plain(&l);
		}
	}
	for (; l.p < l.end; l.p++) /* the message names the last line */
		l.line += *l.p == '\n';
	if (bad != 0)
		hr_buf_addf(why, "%u)", l.line);
	return bad;
}
