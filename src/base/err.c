/* Implements errors as values. Nothing here allocates, since failing must not be able to fail. */
#include "config.h"

#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *
hr_err_class(const struct hr_err *err)
{
	static const char *const names[] = {
	    [HR_OK] = "",
	    [HR_E_INVAL] = "ValueError",
	    [HR_E_NOTFOUND] = "FileNotFoundError",
	    [HR_E_NOMEM] = "MemoryError",
	    [HR_E_TOOLARGE] = "ValueError",
	    [HR_E_SYS] = "OSError",
	    [HR_E_PROTO] = "RemoteProtocolError",
	    [HR_E_GONE] = "AgentRuntimeDisconnectedError",
	    [HR_E_TIMEOUT] = "TimeoutError",
	    [HR_E_BUSY] = "AgentRuntimeUnavailableError",
	    [HR_E_UNTRUSTED] = "PermissionError",
	    [HR_E_UNSUPPORTED] = "AgentRuntimeError",
	    [HR_E_PERMISSION] = "PermissionError",
	    [HR_E_RUNTIME] = "AgentRuntimeError",
	    [HR_E_BUILD] = "AgentRuntimeBuildError",
	    [HR_E_RUNTIME_TIMEOUT] = "AgentRuntimeTimeoutError",
	    [HR_E_UNAVAILABLE] = "AgentRuntimeUnavailableError",
	    [HR_E_NOT_READY] = "AgentRuntimeNotReadyError",
	    [HR_E_DISCONNECTED] = "AgentRuntimeDisconnectedError",
	    [HR_E_NO_SANDBOX] = "AgentRuntimeNotFoundError",
	    [HR_E_HTTP_STATUS] = "RequestHTTPError",
	    [HR_E_HTTP_TIMEOUT] = "ReadTimeout",
	    [HR_E_HTTP_NETWORK] = "ConnectError",
	    [HR_E_RETRY] = "RetryError",
	};

	if (err->cls != NULL)
		return err->cls;
	if (err->code == HR_E_SYS && err->sys == ENOENT)
		return names[HR_E_NOTFOUND];
	return (size_t)err->code < sizeof(names) / sizeof(names[0]) ? names[err->code] : "";
}

/* Clears *err, so that nothing of an earlier failure stays. */
static void
begin(struct hr_err *err, enum hr_errc code, int sys)
{
	err->code = code;
	err->last = HR_OK;
	err->sys = sys;
	err->status = 0;
	err->cls = NULL;
}

/* Drops the torn tail of a message: vsnprintf may cut a UTF-8 character in two. */
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
	begin(err, code, 0);
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap); /* the message may be truncated */
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
	begin(err, sys == ENOMEM ? HR_E_NOMEM : sys == EACCES ? HR_E_PERMISSION : HR_E_SYS, sys);
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

void *
hr_err_null(struct hr_err *err)
{
	(void)hr_err_nomem(err);
	return NULL;
}

int
hr_err_from(struct hr_err *err, enum hr_errc code, const struct hr_err *e)
{
	if (e->code == HR_E_NOMEM)
		return hr_err_nomem(err);
	return hr_err_set(err, code, "%s", e->msg);
}

int
hr_err_pass(struct hr_err *err, const struct hr_err *e)
{
	if (err != NULL)
		*err = *e;
	return -1;
}

int
hr_err_prefix(struct hr_err *err, const char *fmt, ...)
{
	char old[sizeof(err->msg)];
	va_list ap;
	size_t n;

	if (err == NULL || err->code == HR_OK)
		return -1;
	memcpy(old, err->msg, sizeof(old));
	va_start(ap, fmt);
	(void)vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	n = strlen(err->msg);
	(void)snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", old);
	trim_torn_character(err->msg, sizeof(err->msg));
	return -1;
}

void
hr_assert_failed(const char *cond, const char *file, int line)
{
	(void)fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, cond);
	abort();
}
