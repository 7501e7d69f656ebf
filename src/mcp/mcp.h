/* hr_mcp: serves the sandbox over the Model Context Protocol (doc/agents.md), revisions 2026-07-28
 * and 2025-11-25. The server is stateless: each JSON-RPC message with its HTTP headers gets one
 * answer. MCP adds no second way to run commands or write files: the tools use the caller's
 * actions. */
#ifndef HR_MCP_MCP_H
#define HR_MCP_MCP_H

#include <stdbool.h>

#include "mcp/env.h"

/* The headers of a request; a missing header is "". */
struct hr_mcp_request {
	struct hr_span body;
	const char *version; /* value of MCP-Protocol-Version */
	const char *method;  /* value of Mcp-Method */
	const char *name;    /* value of Mcp-Name */
	bool events;         /* the client accepts text/event-stream */
};

/* Answers the message. `ret` must have been reset. */
void
hr_mcp_handle(const struct hr_mcp_env *env, const struct hr_mcp_request *q, struct hr_answer *ret);

#endif
