/* Reads numbers: digits of any script, as in Python's int() and float(), no hexadecimal, no
 * underscores; and string literals without a prefix. */
#include "config.h"

#include "plugins/browser/program/pyliterals.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/browser/program/pychars.h"
#include "base/text/utf8.h"
#include "proto/python/escape.h"
#include "proto/python/repr.h"

#define INT_DIGITS_MAX 4300 /* Python has the same limit */

struct cursor {
	const char *p, *end;
	struct hr_buf *why;
};

/* Copies digits as ASCII; returns how many. */
static size_t
read_digits(struct cursor *r, struct hr_buf *b)
{
	size_t n, many = 0;
	int v;

	for (; r->p < r->end; r->p += n, many++) {
		v = br_digit_value(hr_utf8_next(r->p, r->end, &n));
		if (v < 0)
			break;
		hr_buf_addc(b, (char)('0' + v));
	}
	return many;
}

/* Reads [eE][+-]?digits, or nothing. */
static bool
read_exponent(struct cursor *r, struct hr_buf *b)
{
	const char *from = r->p;
	size_t had = b->len;

	if (r->p < r->end && (*r->p == 'e' || *r->p == 'E')) {
		hr_buf_addc(b, *r->p++);
		if (r->p < r->end && (*r->p == '+' || *r->p == '-'))
			hr_buf_addc(b, *r->p++);
		if (read_digits(r, b) > 0)
			return true;
	}
	r->p = from;
	if (b->fail == HR_OK && b->p != NULL)
		b->p[b->len = had] = '\0';
	return false;
}

static int
make_int(struct cursor *r, const char *digits, size_t n, struct br_value *ret)
{
	bool negative = *digits == '-';

	digits += negative;
	n -= negative;
	if (n > INT_DIGITS_MAX) {
		hr_buf_addf(r->why,
		    "ValueError: Exceeds the limit (%d digits) for integer string conversion: "
		    "value has %zu digits; use sys.set_int_max_str_digits() to increase the limit",
		    INT_DIGITS_MAX, n);
		return BR_RAISED;
	}
	while (n > 1 && *digits == '0') {
		digits++;
		n--;
	}
	negative = negative && *digits != '0';
	*ret = (struct br_value){.kind = BR_V_INT, .len = n + negative, .text = malloc(n + 2)};
	if (ret->text == NULL)
		return BR_NOMEM;
	ret->text[0] = '-';
	memcpy(ret->text + negative, digits, n);
	ret->text[ret->len] = '\0';
	ret->number = strtod(ret->text, NULL);
	return BR_READ;
}

int
br_pynumber(const char **p, const char *end, struct br_value *ret, struct hr_buf *why)
{
	struct cursor cursor = {*p, end, why}, *r = &cursor;
	HR_BUF(b, (size_t)(r->end - r->p) + 8);
	size_t before, behind = 0;
	bool is_float;
	int done;

	if (*r->p == '-')
		hr_buf_addc(&b, '-');
	if (*r->p == '-' || *r->p == '+')
		r->p++;
	before = read_digits(r, &b);
	is_float = before > 0 && read_exponent(r, &b);
	if (!is_float && r->p < r->end && *r->p == '.') {
		hr_buf_addc(&b, *r->p++);
		behind = read_digits(r, &b);
		is_float = before + behind > 0;
		if (is_float)
			(void)read_exponent(r, &b);
	}
	if (b.fail != HR_OK) {
		done = BR_NOMEM;
	} else if (is_float) {
		*ret = (struct br_value){.kind = BR_V_FLOAT, .number = strtod(b.p, NULL)};
		done = BR_READ;
	} else if (before > 0) {
		done = make_int(r, b.p, b.len, ret);
	} else {
		done = BR_NOT_THERE;
	}
	if (done == BR_READ)
		*p = r->p;
	return done;
}

/* ---- strings ---- */

/* Converts line ends to \n, as Python reads source. The caller owns *ret. */
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

/* Checks what Python refuses before it parses the literal. */
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

int
br_pystring(const char *p, size_t len, struct br_value *ret, struct hr_buf *why)
{
	size_t quotes = len >= 6 && p[1] == p[0] && p[2] == p[0] ? 3 : 1, n;
	HR_FREE char *source = NULL;
	HR_BUF(out, len);
	int bad;

	if (!is_source(p, len, why))
		return why->fail != HR_OK ? -1 : 1;
	source = one_line_end(p, len, &n);
	if (source == NULL)
		return -1;
	bad = hr_pyescape(&out, source + quotes, n - 2 * quotes, br_char_named, why);
	if (out.fail != HR_OK || why->fail != HR_OK)
		return -1;
	if (bad != 0)
		return 1;
	hr_buf_add(&out, "", 0);
	*ret = (struct br_value){.kind = BR_V_STR, .len = out.len};
	ret->text = out.p != NULL ? hr_buf_take(&out) : calloc(1, 1);
	return ret->text != NULL ? 0 : -1;
}
