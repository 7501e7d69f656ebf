/* hr_mcpserver: parses the description of an MCP server that is a program, from a configuration or
 * POST /update_mcp_server (doc/host.md, "MCP servers"). Pure. */
#ifndef HR_PROTO_MCPSERVER_H
#define HR_PROTO_MCPSERVER_H

#include "base/err.h"

struct json_object;

/* Returns {"name", "command", "args", "env"} of an entry, owned by the caller: args that are text
 * become a list as a POSIX shell splits it, env as "NAME=value,..." a map. Returns NULL for an
 * invalid entry, with the original's message in *err. */
struct json_object *hr_mcpserver(struct json_object *entry, struct hr_err *err);

/* Returns a string without surrounding white space, for the caller to free; NULL: not a string, or
 * no memory. `what`: its name in the error. */
char *hr_mcpserver_trimmed(struct json_object *v, const char *what, struct hr_err *err);

#endif
