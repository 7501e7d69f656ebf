/* Shows progress on one line of a terminal that is rewritten; nothing is written if stderr is not a
 * terminal. */
#ifndef HR_CLI_PROGRESS_H
#define HR_CLI_PROGRESS_H

#include "cli/cli.h"

/* Implements hr_progress_fn; arg is the struct cli. */
void cli_progress(void *arg, const char *what, unsigned long long done, unsigned long long total);
/* Draws a status line, cut to the terminal's width. Returns false if there is no terminal. */
bool cli_progress_line(struct cli *c, const char *text, size_t len);
/* Erases the line before other output. */
void cli_progress_end(struct cli *c);
/* Implements the "log" of a sandbox or settings; arg is the struct cli. Erases the line, prints to
 * stderr. */
void cli_note(void *arg, const char *text);

#endif
