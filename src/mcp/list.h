/* hr_mcp_list: the table of tools, as clients are told of it and as arguments are checked. */
#ifndef HR_MCP_LIST_H
#define HR_MCP_LIST_H

#include "mcp/call.h"

/* "tools":[...]; those of plugins that are there. */
void hr_mcp_put_tools(struct hr_buf *b, const char *run_dir);
const struct hr_mcp_tool *hr_mcp_find(const char *run_dir, const char *name);
/* False: said. */
bool hr_mcp_check_args(struct hr_mcp_call *c, const struct hr_mcp_tool *t);

#endif
