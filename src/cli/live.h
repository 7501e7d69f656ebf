/* Runs an interactive command in a sandbox's shell: live output, interrupts, and a way to leave and
 * come back. */
#ifndef HR_CLI_LIVE_H
#define HR_CLI_LIVE_H

#include "cli/cli.h"

/* Returns true if the sandbox has no server: each command then has its own shell. */
bool cli_is_direct(const struct hr_sandbox *s);

/* Performs a `run` action in the shared shell and prints its output live, until the command ends or
 * a limit expires. With --json it prints the observation at the end. Returns the exit status. */
int cli_live_run(struct cli *c, struct hr_sandbox *s, const char *action, bool limited);

/* Runs a command in a sandbox without a server: the first interrupt goes to the command, a second
 * one kills its processes, a third one leaves it. */
int cli_direct_run(struct cli *c, struct hr_sandbox *s, const char *action);

/* Follows the last command of that shell, from its start to its end. */
int cli_live_attach(struct cli *c, struct hr_sandbox *s);

#endif
