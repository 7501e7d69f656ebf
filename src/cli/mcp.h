/* Connects the parts of "handrail mcp". */
#ifndef HR_CLI_MCP_H
#define HR_CLI_MCP_H

struct cli;
struct cli_args;
struct cli_option;

/* Handles --print-config: prints the configuration of a client, which starts this command with the
 * given options. `own` has the command's options; `not_these` has the letters of those to leave
 * out. */
int cli_mcp_config(const struct cli *c, const struct cli_args *a, const struct cli_option *own,
    const char *not_these, const char *client);

#endif
