/* hr_mcpconf: the lists of MCP servers of a configuration, checked and in one form (doc/host.md,
 * "MCP servers"). Pure. */
#ifndef HR_HOST_CONFIG_MCPCONF_H
#define HR_HOST_CONFIG_MCPCONF_H

#include "host/handrail.h"

struct json_object;

/* name: "sse_servers", "shttp_servers" or "stdio_servers". A URL as text becomes an object, args
 * and env that are text become a list and a map, a missing timeout becomes 60. The new list is the
 * caller's; NULL: a server is not right, and *err says why. */
struct json_object *
hr_mcpconf_check(const char *name, struct json_object *list, struct hr_err *err);

#endif
