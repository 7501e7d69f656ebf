/* The table of subcommands, in the order of the help. */
#include "config.h"

#include "cli/commands.h"

const struct cli_command *const cli_commands[] = {
    &cli_up,
    &cli_pool,
    &cli_clone,
    &cli_setup,
    &cli_microagents,
    &cli_changes,
    &cli_diff,
    &cli_ps,
    &cli_run,
    &cli_come_back,
    &cli_py,
    &cli_sh,
    &cli_ls,
    &cli_read,
    &cli_write,
    &cli_edit,
    &cli_put,
    &cli_get,
    &cli_logs,
    &cli_events,
    &cli_top,
    &cli_url,
    &cli_mcp,
    &cli_pause,
    &cli_resume,
    &cli_down,
    &cli_build,
    &cli_image,
    &cli_preflight,
    &cli_id,
    &cli_config,
    &cli_doctor,
    &cli_backends,
    &cli_fleet,
    &cli_completion,
    &cli_version,
};

const size_t cli_commands_n = sizeof(cli_commands) / sizeof(*cli_commands);
