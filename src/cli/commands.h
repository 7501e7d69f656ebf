/* Finds subcommands in their table. */
#ifndef HR_CLI_COMMANDS_H
#define HR_CLI_COMMANDS_H

#include "cli/cli.h"

/* Returns the group's name, or NULL if there is none. */
const char *cli_group(const char *name);
/* Returns true if a command belongs to a group, or for NULL if it belongs to none. */
bool cli_is_in(const struct cli_command *cmd, const char *group);
/* Returns the command of that name or alias, or NULL if there is none. */
const struct cli_command *cli_command_of(const char *group, const char *name);
/* Returns the command, of a group if that is not NULL; or NULL after it has reported that there is
 * none, with a suggestion. */
const struct cli_command *cli_find_command(const char *group, const char *name);

/* Returns this command's equivalent of another program's option, or NULL if none is known. */
const char *cli_guess_option(const char *cmd, const char *option);
/* Reports a surplus argument, with a suggestion. Returns CLI_USAGE. */
int cli_surplus(const struct cli_command *cmd, const char *word);

struct hr_buf;
struct json_object;
/* Appends an event of a network with rules: its time, the decision, its target, and the entry that
 * decided. */
void cli_put_net_event(struct hr_buf *b, struct json_object *o);
/* Appends an entry of "not_copied" of a fork (host/box/fork.h): "files (a, b)". */
void cli_put_not_copied(struct hr_buf *b, struct json_object *lack);

extern const struct cli_command cli_backends, cli_build, cli_changes, cli_clone, cli_come_back,
    cli_completion, cli_config, cli_cp, cli_diff, cli_doctor, cli_down, cli_edit, cli_events,
    cli_exec, cli_fleet_doctor, cli_fleet_drain, cli_fleet_init, cli_fleet_keys, cli_fleet_net,
    cli_fleet_pools, cli_fleet_ps, cli_fleet_snapshots, cli_fork, cli_get, cli_id, cli_image_ls,
    cli_image_rm, cli_inspect, cli_logs, cli_ls, cli_mcp, cli_microagents, cli_net_allow,
    cli_net_deny, cli_net_log, cli_net_show, cli_net_test, cli_pause, cli_pool, cli_preflight,
    cli_ps, cli_put, cli_py, cli_read, cli_resume, cli_rm, cli_run, cli_secret_list, cli_secret_rm,
    cli_secret_set, cli_setup, cli_sh, cli_snapshot, cli_snapshot_export, cli_snapshot_import,
    cli_snapshot_ls, cli_snapshot_rm, cli_stop, cli_top, cli_up, cli_url, cli_version, cli_write;

#endif
