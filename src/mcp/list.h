/* hr_mcp_list: holds the table of tools: its listing for clients, and the check of arguments. */
#ifndef HR_MCP_LIST_H
#define HR_MCP_LIST_H

#include "mcp/call.h"

/* Appends "tools":[...] without the tools whose plugin is missing. */
void hr_mcp_put_tools(struct hr_buf *b, const char *run_dir);
const struct hr_mcp_tool *hr_mcp_find(const char *run_dir, const char *name);
/* Returns false after hr_mcp_fail(). */
bool hr_mcp_check_args(struct hr_mcp_call *c, const struct hr_mcp_tool *t);

#endif
