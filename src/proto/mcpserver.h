/* hr_mcpserver: the description of an MCP server that is a program, as a configuration and
 * POST /update_mcp_server have it (doc/host.md, "MCP servers"). Pure. */
#ifndef HR_PROTO_MCPSERVER_H
#define HR_PROTO_MCPSERVER_H

#include "base/err.h"

struct json_object;

/* {"name", "command", "args", "env"} of an entry: args that are text become a list as a POSIX shell
 * splits it, env as "NAME=value,..." a map. The result is the caller's; NULL: the entry is not
 * right, and *err says why in the original's words. */
struct json_object *hr_mcpserver(struct json_object *entry, struct hr_err *err);

/* A text without white space around it, for the caller to free; NULL: it is none, or no memory.
 * what: its name in the error. */
char *hr_mcpserver_trimmed(struct json_object *v, const char *what, struct hr_err *err);

#endif
