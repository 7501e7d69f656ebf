/* Manages strings on the heap. */
#include "config.h"

#include "base/text/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

int
hr_text_set(char **to, const char *text, struct hr_err *err)
{
	char *copy = text != NULL ? strdup(text) : NULL;

	if (text != NULL && copy == NULL)
		return hr_err_nomem(err);
	free(*to);
	*to = copy;
	return 0;
}

int
hr_text_setf(char **to, struct hr_err *err, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0)
		return hr_err_nomem(err);
	free(*to);
	*to = text;
	return 0;
}

void
hr_text_plain(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < ' ' || (unsigned char)*text > '~')
			*text = '?';
}

int
hr_text_truth(const char *p, size_t len)
{
	static const char *const words[] = {
	    "0", "off", "f", "false", "n", "no", "1", "on", "t", "true", "y", "yes"};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (len == strlen(words[i]) && strncasecmp(p, words[i], len) == 0)
			return i >= 6;
	return -1;
}

bool
hr_text_is_here(const char *authority)
{
	static const char *const names[] = {"localhost", "127.0.0.1", "[::1]"};
	const char *end;
	size_t i, len;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		len = strlen(names[i]);
		if (strncasecmp(authority, names[i], len) != 0)
			continue;
		end = authority + len;
		end += *end == ':' ? 1 + strspn(end + 1, "0123456789") : 0;
		if (*end == '\0' || *end == '/')
			return true;
	}
	return false;
}

int
hr_text_python_int(const char *text, long long *ret)
{
	const char *at = text;
	bool negative;
	long long n = 0;

	while (isspace((unsigned char)*at))
		at++;
	negative = *at == '-';
	if (*at == '-' || *at == '+')
		at++;
	if (!isdigit((unsigned char)*at))
		return -1;
	while (isdigit((unsigned char)*at)) {
		if (__builtin_mul_overflow(n, 10LL, &n) ||
		    __builtin_add_overflow(n, (long long)(*at - '0'), &n))
			return -1;
		at++;
		if (*at == '_' && isdigit((unsigned char)at[1]))
			at++;
	}
	while (isspace((unsigned char)*at))
		at++;
	if (*at != '\0')
		return -1;
	*ret = negative ? -n : n;
	return 0;
}
