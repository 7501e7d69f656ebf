/* Texts of the heap. */
#include "config.h"

#include "base/text/text.h"

#include <stdarg.h>
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
