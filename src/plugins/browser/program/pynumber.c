/* Reads numbers: digits of any script, as in Python's int() and float(); no hexadecimal, no
 * underscores. */
#include "config.h"

#include "plugins/browser/program/pyliterals.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/browser/program/pychars.h"
#include "base/text/utf8.h"

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
