/* Errors of the host side. */
#include "config.h"

#include "host/common/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *
error_class(enum hr_error_code code)
{
	static const char *const names[] = {
	    [HR_ERROR_NONE] = "",
	    [HR_ERROR_RUNTIME] = "AgentRuntimeError",
	    [HR_ERROR_BUILD] = "AgentRuntimeBuildError",
	    [HR_ERROR_TIMEOUT] = "AgentRuntimeTimeoutError",
	    [HR_ERROR_UNAVAILABLE] = "AgentRuntimeUnavailableError",
	    [HR_ERROR_NOT_READY] = "AgentRuntimeNotReadyError",
	    [HR_ERROR_DISCONNECTED] = "AgentRuntimeDisconnectedError",
	    [HR_ERROR_NOT_FOUND] = "AgentRuntimeNotFoundError",
	    [HR_ERROR_HTTP_STATUS] = "RequestHTTPError",
	    [HR_ERROR_HTTP_TIMEOUT] = "ReadTimeout",
	    [HR_ERROR_HTTP_NETWORK] = "ConnectError",
	    [HR_ERROR_HTTP_PROTOCOL] = "RemoteProtocolError",
	    [HR_ERROR_RETRY] = "RetryError",
	    [HR_ERROR_VALUE] = "ValueError",
	    [HR_ERROR_PERMISSION] = "PermissionError",
	    [HR_ERROR_NOENT] = "FileNotFoundError",
	    [HR_ERROR_OSTIMEOUT] = "TimeoutError",
	    [HR_ERROR_MEMORY] = "MemoryError",
	    [HR_ERROR_SYSTEM] = "OSError",
	};

	return names[code];
}

int
hr_error_set(struct hr_error *err, enum hr_error_code code, const char *fmt, ...)
{
	va_list ap;

	if (err == NULL)
		return -1;
	memset(err, 0, sizeof(*err));
	err->code = code;
	err->cls = error_class(code);
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap); /* cut is fine */
	va_end(ap);
	return -1;
}

int
hr_error_sys(struct hr_error *err, int sys, const char *fmt, ...)
{
	va_list ap;
	size_t n;

	if (err == NULL)
		return -1;
	memset(err, 0, sizeof(*err));
	err->code = sys == ENOMEM   ? HR_ERROR_MEMORY
		    : sys == ENOENT ? HR_ERROR_NOENT
		    : sys == EACCES ? HR_ERROR_PERMISSION
				    : HR_ERROR_SYSTEM;
	err->cls = error_class(err->code);
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	n = strlen(err->text);
	(void)snprintf(err->text + n, sizeof(err->text) - n, ": %s", strerror(sys));
	return -1;
}

int
hr_error_nomem(struct hr_error *err)
{
	return hr_error_set(err, HR_ERROR_MEMORY, "out of memory");
}

int
hr_error_from(struct hr_error *err, enum hr_error_code code, const struct hr_err *e)
{
	if (e->code == HR_E_NOMEM)
		return hr_error_nomem(err);
	return hr_error_set(err, code, "%s", e->msg);
}
