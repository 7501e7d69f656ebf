/* What the parts of "handrail mcp" share. */
#ifndef HR_CLI_MCP_H
#define HR_CLI_MCP_H

struct cli;
struct cli_args;
struct cli_option;

/* --print-config: prints the configuration of a client of that name, which starts the command with
 * the options that were given here. own: the command's; not_these: letters of those that are left
 * out. */
int cli_mcp_config(const struct cli *c, const struct cli_args *a, const struct cli_option *own,
    const char *not_these, const char *client);

#endif
