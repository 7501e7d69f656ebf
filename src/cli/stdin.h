/* Handles standard input of commands in a sandbox whose server cannot pass it on. */
#ifndef HR_CLI_STDIN_H
#define HR_CLI_STDIN_H

#include <stdbool.h>

/* Returns true if standard input is not a terminal and has data to read now. Never blocks. */
bool cli_stdin_has_data(void);

/* Reports that the input cannot be passed on. Returns CLI_USAGE. */
int cli_stdin_refuse(void);

#endif
