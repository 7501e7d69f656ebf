/* What the parts of "handrail mcp" share. */
#ifndef HR_CLI_MCP_H
#define HR_CLI_MCP_H

struct cli;

/* --print-config: what a client of that name wants to have pasted. */
int cli_mcp_config(const struct cli *c, const char *client);

#endif
