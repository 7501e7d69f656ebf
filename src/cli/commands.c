/* Holds the table of subcommands, in the order and the sections of the help. */
#include "config.h"

#include <string.h>

#include "cli/commands.h"

const struct cli_command *const cli_commands[] = {&cli_up, &cli_ps, &cli_inspect, &cli_stop,
    &cli_pause, &cli_resume, &cli_down, &cli_rm, &cli_fork, &cli_top, &cli_logs, &cli_events,
    &cli_url, &cli_pool, &cli_run, &cli_exec, &cli_come_back, &cli_sh, &cli_py, &cli_mcp, &cli_ls,
    &cli_read, &cli_write, &cli_edit, &cli_put, &cli_get, &cli_cp, &cli_clone, &cli_setup,
    &cli_microagents, &cli_changes, &cli_diff, &cli_net_show, &cli_net_allow, &cli_net_deny,
    &cli_net_log, &cli_net_test, &cli_snapshot, &cli_snapshot_export, &cli_snapshot_import,
    &cli_snapshot_ls, &cli_snapshot_rm, &cli_secret_set, &cli_secret_list, &cli_secret_rm,
    &cli_build, &cli_image_ls, &cli_image_rm, &cli_preflight, &cli_fleet_init, &cli_fleet_doctor,
    &cli_fleet_keys, &cli_fleet_ps, &cli_fleet_net, &cli_fleet_pools, &cli_fleet_snapshots,
    &cli_fleet_drain, &cli_doctor, &cli_backends, &cli_config, &cli_id, &cli_completion,
    &cli_version};

const size_t cli_commands_n = sizeof(cli_commands) / sizeof(*cli_commands);

const struct cli_section cli_sections[] = {{&cli_up, "Sandboxes", NULL},
    {&cli_run, "Commands in a sandbox", NULL}, {&cli_ls, "Files of a sandbox", NULL},
    {&cli_clone, "A repository in a sandbox", "repo"},
    {&cli_net_show, "The network of a box with rules", "net"},
    {&cli_snapshot, "Snapshots of boxes", "snapshot"},
    {&cli_secret_set, "Secrets for that network", "secret"},
    {&cli_build, "Runtime images", "image"},
    {&cli_fleet_init, "A handrail-fleetd, for its operator", "fleet"},
    {&cli_doctor, "This machine", NULL}};

const size_t cli_sections_n = sizeof(cli_sections) / sizeof(*cli_sections);

bool
cli_takes_paused(const struct cli_command *cmd)
{
	static const struct cli_command *const without_server[] = {
	    &cli_pause, &cli_stop, &cli_resume, &cli_logs, &cli_fork, &cli_snapshot};
	size_t i;

	for (i = 0; i < sizeof(without_server) / sizeof(*without_server); i++)
		if (cmd == without_server[i])
			return true;
	return strncmp(cmd->name, "net ", 4) == 0;
}
