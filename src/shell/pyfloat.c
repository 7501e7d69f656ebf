#include "config.h"

#include "shell/pyfloat.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "shell/text.h"

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
