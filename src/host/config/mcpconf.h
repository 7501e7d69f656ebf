/* hr_mcpconf: checks and normalises a configuration's lists of MCP servers (doc/host.md, "MCP
 * servers"). No I/O. */
#ifndef HR_HOST_CONFIG_MCPCONF_H
#define HR_HOST_CONFIG_MCPCONF_H

#include "host/handrail.h"

struct json_object;

/* Checks a list; `name` is "sse_servers", "shttp_servers" or "stdio_servers". A URL string becomes
 * an object, strings in args and env become a list and a map, a missing timeout becomes 60. Returns
 * the new list, which the caller owns, or NULL with *err naming the faulty server. */
struct json_object *
hr_mcpconf_check(const char *name, struct json_object *list, struct hr_err *err);

#endif
