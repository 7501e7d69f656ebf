/* cli_options: parses the options of commands, and prints the help. */
#ifndef HR_CLI_OPTIONS_H
#define HR_CLI_OPTIONS_H

#include "cli/cli.h"

/* Appends an option to a->given. Returns -1 without memory. */
int cli_add_given(struct cli_args *a, char letter, const char *value);
/* Parses options and leaves the arguments: everything after the first one if they belong to a
 * command. Returns CLI_OK, or another status after it has reported the error. */
int cli_read_options(const struct cli_command *cmd, int argc, char **argv, struct cli_args *a);

/* Prints the help; c has a configuration if a back-end was named, and may be NULL. */
int cli_help_of(const struct cli_command *cmd, const struct cli *c);
int cli_help(const char *group); /* Prints the help of a group, or of handrail (NULL). */

#endif
