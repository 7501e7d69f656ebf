/* Performs actions of subcommands, and prints their observations for people. */
#ifndef HR_CLI_OBSERVATION_H
#define HR_CLI_OBSERVATION_H

#include "cli/cli.h"

struct json_object;

/* Sends {"action": type, "args": args} (taking ownership of args) and prints the result: its
 * content, or with --json everything. timeout is in seconds; 0: the configured one. Returns the
 * command's exit status, if there is one. */
int cli_act(struct cli *c, const char *type, struct json_object *args_take, double timeout_s);

/* Performs the action in an attached sandbox. */
int cli_act_in(struct cli *c, struct hr_sandbox *s, const char *type, struct json_object *args_take,
    double timeout_s);

/* Makes the action's text, which the caller frees. Returns CLI_OK, or another status after it has
 * reported the error. */
int cli_action_text(const char *type, struct json_object *args_take, double timeout_s, char **ret);
/* Prints an observation for people, without its content if they have seen that. */
int cli_observed(const struct cli *c, const char *text, bool content);
/* Reports what the server found out about the end of the command: memory, processes, disk, network.
 */
void cli_observed_facts(const struct cli *c, const char *text);

/* Returns the args of `run`; with a limit (> 0) it waits that long despite silence. Returns NULL
 * without memory. */
struct json_object *cli_run_args(const char *line, double timeout_s);

/* Parses --timeout; 0: not given. */
int cli_seconds(const struct cli_args *a, double *ret);

#endif
