/* A command in a sandbox's shell as a person has it: its output as it comes, interrupts for it, and
 * a way to leave it and to come back. */
#ifndef HR_CLI_LIVE_H
#define HR_CLI_LIVE_H

#include "cli/cli.h"

/* Performs a `run` action for the shell that all share, and prints its output: on a terminal as it
 * comes, and until it ends unless a limit of time was given; elsewhere once it is all there.
 * The exit status. */
int cli_live_run(struct cli *c, struct hr_sandbox *s, const char *action, bool limited);

/* The last command of that shell, from its beginning to its end. */
int cli_live_attach(struct cli *c, struct hr_sandbox *s);

#endif
