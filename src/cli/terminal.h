/* Runs a program of a sandbox on this terminal, with the server's help. */
#ifndef HR_CLI_TERMINAL_H
#define HR_CLI_TERMINAL_H

#include "host/handle.h"

/* Runs the program until it ends; a signal to this process ends it. Returns its exit status, or
 * another one after an error was reported. */
int cli_terminal(struct hr_sandbox *s, const char *const *argv);

#endif
