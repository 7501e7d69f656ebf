#include "config.h"

#include "shell/pyfloat.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shell/text.h"

/* d = 0.D1D2...Dn * 10^point, D1 not 0 */
struct decimal {
	char digits[20];
	int n, point;
};

static bool
decimal_is(const struct decimal *x, double d)
{
	char text[40];

	(void)snprintf(text, sizeof text, "0.%se%d", x->digits, x->point);
	return strtod(text, NULL) == d;
}

static void
decimal_round(struct decimal *x, double d, int n)
{
	char text[40];

	(void)snprintf(text, sizeof text, "%.*e", n - 1, d);
	x->digits[0] = text[0];
	memcpy(x->digits + 1, text + 2, (size_t)n - 1);
	x->digits[n] = '\0';
	x->n = n;
	x->point = (int)strtol(strchr(text, 'e') + 1, NULL, 10) + 1;
}

/* To the next number of as many digits. */
static void
decimal_increment(struct decimal *x)
{
	int i = x->n - 1;

	while (i >= 0 && x->digits[i] == '9')
		x->digits[i--] = '0';
	if (i >= 0) {
		x->digits[i]++;
	} else {
		x->digits[0] = '1';
		x->point++;
	}
}

/* The shortest decimal that reads back as d > 0. Below a power of two the numbers lie closer than
 * above it, so the nearest decimal may miss where the next one does not. */
static void
decimal_shortest(struct decimal *x, double d)
{
	for (int n = 1; n <= 17; n++) {
		decimal_round(x, d, n);
		if (decimal_is(x, d))
			return;
		decimal_increment(x);
		if (decimal_is(x, d))
			return;
	}
	decimal_round(x, d, 17);
}

static void
put_zeros(struct hr_buf *b, int n)
{
	while (n-- > 0)
		hr_buf_addc(b, '0');
}

static void
put_decimal(struct hr_buf *b, const struct decimal *x)
{
	if (x->point > 16 || x->point < -3) {
		hr_buf_addc(b, x->digits[0]);
		if (x->n > 1)
			hr_buf_addf(b, ".%s", x->digits + 1);
		hr_buf_addf(b, "e%c%02d", x->point > 0 ? '+' : '-', abs(x->point - 1));
	} else if (x->point <= 0) {
		hr_buf_adds(b, "0.");
		put_zeros(b, -x->point);
		hr_buf_adds(b, x->digits);
	} else if (x->point >= x->n) {
		hr_buf_adds(b, x->digits);
		put_zeros(b, x->point - x->n);
		hr_buf_adds(b, ".0");
	} else {
		hr_buf_add(b, x->digits, (size_t)x->point);
		hr_buf_addf(b, ".%s", x->digits + x->point);
	}
}

void
hr_pyfloat(struct hr_buf *b, double d)
{
	struct decimal x;

	if (isnan(d)) {
		hr_buf_adds(b, "nan");
		return;
	}
	if (signbit(d)) {
		hr_buf_addc(b, '-');
		d = -d;
	}
	if (isinf(d)) {
		hr_buf_adds(b, "inf");
	} else if (d == 0) {
		hr_buf_adds(b, "0.0");
	} else {
		decimal_shortest(&x, d);
		put_decimal(b, &x);
	}
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Copies digits without their underscores; an underscore must stand between two digits. Returns how
 * much was read; *out moves on. */
static size_t
copy_digits(const char *s, size_t len, char **out)
{
	size_t i = 0;

	while (i < len) {
		if (is_digit(s[i]))
			*(*out)++ = s[i];
		else if (s[i] != '_' || i == 0 || !is_digit(s[i - 1]) || i + 1 == len ||
			 !is_digit(s[i + 1]))
			break;
		i++;
	}
	return i;
}

/* [digits][.digits][e[+-]digits] with at least one digit before the e. */
static bool
copy_number(const char *s, size_t len, char *out)
{
	size_t i = copy_digits(s, len, &out), fraction = 0, exponent;

	if (i < len && s[i] == '.') {
		*out++ = '.';
		fraction = copy_digits(s + i + 1, len - i - 1, &out);
		if (i + fraction == 0)
			return false;
		i += fraction + 1;
	}
	if (i == 0)
		return false;
	if (i < len && (s[i] == 'e' || s[i] == 'E')) {
		*out++ = s[i++];
		if (i < len && (s[i] == '+' || s[i] == '-'))
			*out++ = s[i++];
		exponent = copy_digits(s + i, len - i, &out);
		if (exponent == 0)
			return false;
		i += exponent;
	}
	*out = '\0';
	return i == len;
}

static bool
is_word(const char *s, size_t len, const char *word)
{
	return strlen(word) == len && strncasecmp(s, word, len) == 0;
}

/* The number without its sign. */
static int
parse_magnitude(const char *s, size_t len, double *ret, struct hr_err *err)
{
	char *text;
	bool ok;

	if (is_word(s, len, "nan")) {
		*ret = NAN;
		return 0;
	}
	if (is_word(s, len, "inf") || is_word(s, len, "infinity")) {
		*ret = INFINITY;
		return 0;
	}
	text = malloc(len + 1);
	if (!text)
		return hr_err_nomem(err);
	ok = copy_number(s, len, text);
	if (ok)
		*ret = strtod(text, NULL);
	free(text);
	return ok ? 0 : hr_err_set(err, HR_E_INVAL, "could not convert string to float");
}

int
hr_pyfloat_parse(const char *s, size_t len, double *ret, struct hr_err *err)
{
	bool minus = false;
	double d = 0; /* gcc cannot see that hr_err_set() never returns 0 */

	/* U+001C to 001F are white space to str.strip() but not to float(). */
	for (size_t i = 0; i < len; i++)
		if (s[i] >= 0x1C && s[i] <= 0x1F)
			return hr_err_set(err, HR_E_INVAL, "could not convert string to float");
	s = hr_shell_strip(s, len, &len);
	if (len > 0 && (*s == '+' || *s == '-')) {
		minus = *s == '-';
		s++;
		len--;
	}
	if (parse_magnitude(s, len, &d, err))
		return -1;
	*ret = minus ? -d : d;
	return 0;
}
