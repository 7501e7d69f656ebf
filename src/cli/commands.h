/* The subcommands, each a row. */
#ifndef HR_CLI_COMMANDS_H
#define HR_CLI_COMMANDS_H

#include "cli/cli.h"

/* The one of that name; NULL, said: there is none, and what may be meant. */
const struct cli_command *cli_find_command(const char *name);

/* How another program's option is called here; NULL: nobody knows. */
const char *cli_guess_option(const char *cmd, const char *option);
/* CLI_USAGE, said: that word is too many, and what may be meant by it. */
int cli_surplus(const struct cli_command *cmd, const char *word);

extern const struct cli_command cli_build, cli_changes, cli_clone, cli_completion, cli_config,
    cli_backends, cli_diff, cli_doctor, cli_down, cli_edit, cli_events, cli_fleet, cli_get, cli_id,
    cli_image, cli_logs, cli_ls, cli_mcp, cli_microagents, cli_pause, cli_pool, cli_preflight,
    cli_ps, cli_put, cli_py, cli_read, cli_resume, cli_run, cli_come_back, cli_setup, cli_sh,
    cli_top, cli_up, cli_url, cli_version, cli_write;

#endif
