/* A command in a sandbox's shell as a person has it: its output as it comes, interrupts for it, and
 * a way to leave it and to come back. */
#ifndef HR_CLI_LIVE_H
#define HR_CLI_LIVE_H

#include "cli/cli.h"

/* Returns true if the sandbox has no server: each command has a shell of its own. */
bool cli_is_direct(const struct hr_sandbox *s);

/* Performs a `run` action in the shell that all share and prints its output as it comes, until the
 * command ends or the limit of time is over, if there is one. With --json it prints the observation
 * at the end. Returns the exit status. */
int cli_live_run(struct cli *c, struct hr_sandbox *s, const char *action, bool limited);

/* The same in a sandbox without a server: an interrupt is for the command, a second one kills what
 * it has started, a third one leaves it. */
int cli_direct_run(struct cli *c, struct hr_sandbox *s, const char *action);

/* The last command of that shell, from its beginning to its end. */
int cli_live_attach(struct cli *c, struct hr_sandbox *s);

#endif
