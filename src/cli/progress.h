/* How far something is, on a line of a terminal that is written again and again; nothing is written
 * where stderr is no terminal. */
#ifndef HR_CLI_PROGRESS_H
#define HR_CLI_PROGRESS_H

#include "cli/cli.h"

/* A hr_progress_fn; arg is the struct cli. */
void cli_progress(void *arg, const char *what, unsigned long long done, unsigned long long total);
/* A line of what goes on, cut to the terminal's width. False: there is no terminal. */
bool cli_progress_line(struct cli *c, const char *text, size_t len);
/* The line is gone, for what is said next. */
void cli_progress_end(struct cli *c);
/* The "log" of a sandbox or of settings, arg the struct cli: behind the line's end, to stderr. */
void cli_note(void *arg, const char *text);

#endif
