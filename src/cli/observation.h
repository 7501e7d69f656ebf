/* Actions of subcommands, and their observations for people. */
#ifndef HR_CLI_OBSERVATION_H
#define HR_CLI_OBSERVATION_H

#include "cli/cli.h"

struct json_object;

/* Sends {"action": type, "args": args} (taken) and prints what comes back: its content, or with
 * --json all of it. timeout: seconds; 0: the configured one. The exit status: the command's own,
 * where there was one. */
int cli_act(struct cli *c, const char *type, struct json_object *args_take, double timeout_s);

/* The same in a sandbox that is attached to. */
int cli_act_in(struct cli *c, struct hr_sandbox *s, const char *type, struct json_object *args_take,
    double timeout_s);

/* The same in steps. Makes the action's text, which the caller frees; returns CLI_OK, or another
 * status after it has reported the error. */
int cli_action_text(const char *type, struct json_object *args_take, double timeout_s, char **ret);
/* Prints an observation for people; without its content if they have seen that. */
int cli_observed(const struct cli *c, const char *text, bool content);

/* What "run" is asked with; who gives a limit (> 0) waits for it, output or not. NULL: no memory.
 */
struct json_object *cli_run_args(const char *line, double timeout_s);

/* The value of --timeout; 0: not given. */
int cli_seconds(const struct cli_args *a, double *ret);

#endif
