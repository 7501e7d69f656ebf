/* hr_shown: prints a command's output to a terminal or a pipe. A terminal gets nothing that it
 * would act upon. */
#ifndef HR_CLI_SHOWN_H
#define HR_CLI_SHOWN_H

#include "base/buf.h"
#include "base/text/tame.h"
#include "cli/cli.h"

struct cli_shown {
	bool silent; /* true with --json: print nothing */
	int out;     /* exit status; CLI_OK while writing works */

	bool begun;       /* output was written */
	bool blank;       /* an empty line, the only output so far, is held back */
	bool interrupted; /* the held line is bash's, after a program without output */

	struct hr_tame tame;
};

void cli_shown_init(struct cli_shown *w, bool silent);

void cli_shown_put(struct cli_shown *w, const char *p, size_t len);
/* Ends the output: completes a line and resets colours. */
void cli_shown_end(struct cli_shown *w);

#endif
