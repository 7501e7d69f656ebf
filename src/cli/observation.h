/* Actions of subcommands, and their observations for people. */
#ifndef HR_CLI_OBSERVATION_H
#define HR_CLI_OBSERVATION_H

#include "cli/cli.h"

struct json_object;

/* Sends {"action": type, "args": args} (taken) and prints what comes back: its content, or with
 * --json all of it. timeout: seconds; 0: the configured one. The exit status: the command's own,
 * where there was one. */
int cli_act(struct cli *c, const char *type, struct json_object *args_take, double timeout_s);

/* An object with these texts, "name", "value", ..., NULL; NULL: no memory. */
struct json_object *cli_object(const char *name, ...) __attribute__((sentinel));

#endif
