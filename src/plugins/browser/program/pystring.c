/* String literals without a prefix: escapes, line ends, and Python 3.11's texts for what is wrong.
 */
#include "config.h"

#include "plugins/browser/program/pyliterals.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "base/text/percent.h"
#include "plugins/browser/program/pychars.h"
#include "proto/python/repr.h"

struct literal {
	const char *p, *end; /* between the quotes */
	size_t pos;          /* where Python counts itself to be: see put_plain() */
	unsigned line;
	struct hr_buf out;
	struct hr_buf *why;
};

static void
say_escape(struct literal *l, size_t from, size_t to, const char *what)
{
	hr_buf_addf(l->why,
	    "SyntaxError: (unicode error) 'unicodeescape' codec can't decode bytes in "
	    "position %zu-%zu: %s (<unknown>, line ",
	    from, to, what);
}

/* Python's decoder of escapes sees other characters than ASCII as \UXXXXXXXX, and counts so. */
static void
put_plain(struct literal *l)
{
	size_t n;
	int32_t cp = hr_utf8_next(l->p, l->end, &n);

	hr_buf_add(&l->out, l->p, n);
	l->pos += cp < 0x80 ? 1 : 10;
	l->p += n;
}

/* \xXX, \uXXXX, \UXXXXXXXX: l->p is behind the letter. */
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
		hr_utf8_add(&l->out, cp);
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
	hr_utf8_add(&l->out, cp);
}

/* \N{NAME}: l->p is behind the letter. */
static int
put_named(struct literal *l)
{
	const char *open = l->p, *close = NULL, *q;
	size_t upto = 2; /* \N */
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
	cp = br_char_named(open + 1, (size_t)(close - open - 1));
	if (cp < 0) {
		say_escape(l, l->pos, l->pos + upto, "unknown Unicode character name");
		return 1;
	}
	hr_utf8_add(&l->out, (uint32_t)cp);
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
		hr_buf_addc(&l->out, to[at - from]);
		l->p++;
		l->pos += 2;
		return 0;
	}
	hr_buf_addc(&l->out, '\\');
	l->pos += (unsigned char)c < 0x80 ? 1 : 6; /* the backslash is seen as \u005c there */
	put_plain(l);
	return 0;
}

/* Python reads source with each line end as \n. *ret is the caller's. */
static char *
one_line_end(const char *p, size_t len, size_t *ret_len)
{
	char *copy = malloc(len + 1);
	size_t i, n = 0;

	for (i = 0; copy != NULL && i < len; i++) {
		if (p[i] == '\r' && i + 1 < len && p[i + 1] == '\n')
			continue;
		copy[n++] = p[i] == '\r' ? '\n' : p[i];
	}
	*ret_len = n;
	return copy;
}

/* What Python refuses before it looks at the literal. */
static bool
is_source(const char *p, size_t len, struct hr_buf *why)
{
	HR_BUF(text, 200);

	if (hr_pyencode_check(&text, "utf-8", p, len) < 0)
		hr_buf_addf(why, "UnicodeEncodeError: %s", hr_buf_str(&text));
	else if (memchr(p, '\0', len) != NULL)
		hr_buf_adds(why, "SyntaxError: source code string cannot contain null bytes");
	else
		return true;
	return false;
}

static int
decode(struct literal *l)
{
	int bad = 0;

	while (bad == 0 && l->p < l->end) {
		if (*l->p == '\\') {
			bad = put_escape(l);
		} else {
			l->line += *l->p == '\n';
			put_plain(l);
		}
	}
	for (; l->p < l->end; l->p++) /* the message names the last line */
		l->line += *l->p == '\n';
	if (bad != 0)
		hr_buf_addf(l->why, "%u)", l->line);
	return bad;
}

int
br_pystring(const char *p, size_t len, struct br_value *ret, struct hr_buf *why)
{
	struct literal l = {.line = 1, .why = why};
	size_t quotes = len >= 6 && p[1] == p[0] && p[2] == p[0] ? 3 : 1, n;
	HR_FREE char *source = NULL;
	int bad;

	if (!is_source(p, len, why))
		return why->fail != HR_OK ? -1 : 1;
	source = one_line_end(p, len, &n);
	if (source == NULL)
		return -1;
	l.p = source + quotes;
	l.end = source + n - quotes;
	hr_buf_init(&l.out, len);
	bad = decode(&l);
	if (bad != 0 || l.out.fail != HR_OK || why->fail != HR_OK) {
		bad = l.out.fail != HR_OK || why->fail != HR_OK ? -1 : 1;
		hr_buf_done(&l.out);
		return bad;
	}
	hr_buf_add(&l.out, "", 0);
	*ret = (struct br_value){.kind = BR_V_STR, .len = l.out.len};
	ret->text = l.out.p != NULL ? hr_buf_take(&l.out) : calloc(1, 1);
	return ret->text != NULL ? 0 : -1;
}
