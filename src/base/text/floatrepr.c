#include "config.h"

#include "base/text/floatrepr.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The value is 0.DIGITS * 10^point. */
struct decimal {
	char digits[20];
	int n;
	int point;
};

static void
decimal_round(struct decimal *x, double d, int digits)
{
	char s[40];

	/* "D.DDDe+XX"; the program never leaves the C locale */
	(void)snprintf(s, sizeof(s), "%.*e", digits - 1, d);
	x->n = digits;
	x->digits[0] = s[0];
	memcpy(x->digits + 1, s + 2, (size_t)digits - 1);
	x->point = (int)strtol(strchr(s, 'e') + 1, NULL, 10) + 1;
}

static bool
decimal_reads_back(const struct decimal *x, double d)
{
	char s[48];

	(void)snprintf(s, sizeof(s), "0.%.*se%d", x->n, x->digits, x->point);
	return strtod(s, NULL) == d;
}

static void
decimal_step_up(struct decimal *x)
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

/* Computes the shortest decimal that reads back as d > 0. Every decimal of up to 15 digits survives
 * the conversion to double and back, so that form without trailing zeros is the shortest;
 * subnormals have fewer digits. */
static void
decimal_shortest(struct decimal *x, double d)
{
	int digits;

	for (digits = d < DBL_MIN ? 1 : 15; digits < 17; digits++) {
		decimal_round(x, d, digits);
		if (decimal_reads_back(x, d))
			break;
		/* Below a power of two the gap is half as wide: the nearest decimal may fail to
		 * read back while its upper neighbour does (2**-44). */
		if (digits == 16) {
			decimal_step_up(x);
			if (decimal_reads_back(x, d))
				break;
		}
	}
	if (digits == 17)
		decimal_round(x, d, 17);
	while (x->n > 1 && x->digits[x->n - 1] == '0')
		x->n--;
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
	if (x->point <= -4 || x->point > 16) {
		hr_buf_addc(b, x->digits[0]);
		if (x->n > 1)
			hr_buf_addf(b, ".%.*s", x->n - 1, x->digits + 1);
		hr_buf_addf(b, "e%c%02d", x->point > 0 ? '+' : '-', abs(x->point - 1));
	} else if (x->point <= 0) {
		hr_buf_adds(b, "0.");
		put_zeros(b, -x->point);
		hr_buf_add(b, x->digits, (size_t)x->n);
	} else if (x->point >= x->n) {
		hr_buf_add(b, x->digits, (size_t)x->n);
		put_zeros(b, x->point - x->n);
		hr_buf_adds(b, ".0");
	} else {
		hr_buf_addf(
		    b, "%.*s.%.*s", x->point, x->digits, x->n - x->point, x->digits + x->point);
	}
}

void
hr_float_repr(struct hr_buf *b, double d)
{
	struct decimal x;

	if (isnan(d)) {
		hr_buf_adds(b, "nan");
		return;
	}
	if (signbit(d))
		hr_buf_addc(b, '-');
	d = fabs(d);
	if (isinf(d)) {
		hr_buf_adds(b, "inf");
	} else if (d == 0) {
		hr_buf_adds(b, "0.0");
	} else {
		decimal_shortest(&x, d);
		put_decimal(b, &x);
	}
}
