/* Errors as values. Nothing here allocates: failing must not be able to fail. */
#include "config.h"

#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* vsnprintf may cut a UTF-8 character in two: drop the torn tail. */
static void
trim_torn_character(char *s, size_t cap)
{
	size_t n = strlen(s);

	if (n + 1 < cap)
		return;
	while (n > 0 && ((unsigned char)s[n - 1] & 0xC0) == 0x80)
		n--;
	if (n > 0 && (unsigned char)s[n - 1] >= 0xC0)
		n--;
	s[n] = '\0';
}

int
hr_err_set(struct hr_err *err, enum hr_errc code, const char *fmt, ...)
{
	va_list ap;

	if (err == NULL)
		return -1;
	err->code = code;
	err->sys = 0;
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap); /* cut is fine */
	va_end(ap);
	trim_torn_character(err->msg, sizeof(err->msg));
	return -1;
}

int
hr_err_sys(struct hr_err *err, int sys, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	if (err == NULL)
		return -1;
	err->code = sys == ENOMEM ? HR_E_NOMEM : HR_E_SYS;
	err->sys = sys;
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	n = strlen(err->msg);
	(void)snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", strerror(sys));
	trim_torn_character(err->msg, sizeof(err->msg));
	return -1;
}

int
hr_err_nomem(struct hr_err *err)
{
	return hr_err_set(err, HR_E_NOMEM, "out of memory");
}

void
hr_err_prefix(struct hr_err *err, const char *fmt, ...)
{
	char old[sizeof(err->msg)];
	va_list ap;
	size_t n;

	if (err == NULL || err->code == HR_OK)
		return;
	memcpy(old, err->msg, sizeof(old));
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	n = strlen(err->msg);
	(void)snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", old);
	trim_torn_character(err->msg, sizeof(err->msg));
}

void
hr_assert_failed(const char *cond, const char *file, int line)
{
	(void)fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, cond);
	abort();
}
