/* hr_mcp: the sandbox as a server of the Model Context Protocol (doc/agents.md), revisions
 * 2026-07-28 and 2025-11-25. One JSON-RPC message and its HTTP headers in, one answer out; nothing
 * is remembered between two of them. It adds no way to run a command or to write a file: it asks
 * whoever calls it for actions. */
#ifndef HR_MCP_MCP_H
#define HR_MCP_MCP_H

#include <stdbool.h>

#include "mcp/env.h"

/* Texts are "" where there is no such header. */
struct hr_mcp_request {
	struct hr_span body;
	const char *version; /* MCP-Protocol-Version */
	const char *method;  /* Mcp-Method */
	const char *name;    /* Mcp-Name */
	bool events;         /* the client reads text/event-stream, too */
};

/* Answers the message; ret was reset. */
void
hr_mcp_handle(const struct hr_mcp_env *env, const struct hr_mcp_request *q, struct hr_answer *ret);

#endif
