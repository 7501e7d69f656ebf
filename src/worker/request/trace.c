/* Parses and makes traceparent. */
#include "config.h"

#include "worker/request/trace.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Accepts lower-case hexadecimal that is not all zeros. */
static bool
hex_ok(const char *p, size_t n)
{
	return strspn(p, "0123456789abcdef") >= n && strspn(p, "0") < n;
}

/* Accepts longer values of later versions; version 255 is never valid. */
static bool
parent_ok(const char *p)
{
	size_t len = strlen(p);

	if (len < HR_TRACE_LEN || p[2] != '-' || p[35] != '-' || p[52] != '-')
		return false;
	if (strncmp(p, "00", 2) == 0 ? len != HR_TRACE_LEN
				     : len > HR_TRACE_LEN && p[HR_TRACE_LEN] != '-')
		return false;
	return strspn(p, "0123456789abcdef") >= 2 && strncmp(p, "ff", 2) != 0 &&
	       hex_ok(p + 3, 32) && hex_ok(p + 36, 16) && strspn(p + 53, "0123456789abcdef") >= 2;
}

void
hr_trace_next(const char *parent, const char *request_id, char ret[HR_TRACE_LEN + 1])
{
	ret[0] = '\0';
	if (strlen(request_id) != 32 || !hex_ok(request_id, 32) || !hex_ok(request_id + 16, 16))
		return;
	if (parent_ok(parent))
		(void)snprintf(ret, HR_TRACE_LEN + 1, "00-%.32s-%.16s-%.2s", parent + 3,
		    request_id + 16, parent + 53);
	else
		(void)snprintf(
		    ret, HR_TRACE_LEN + 1, "00-%.32s-%.16s-00", request_id, request_id + 16);
}
