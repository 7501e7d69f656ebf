/* hr_shown: prints a command's output to a terminal or a pipe. A terminal gets nothing that it
 * would act upon. */
#ifndef HR_CLI_SHOWN_H
#define HR_CLI_SHOWN_H

#include "base/buf.h"
#include "base/text/tame.h"
#include "cli/cli.h"

struct cli_shown {
	bool silent; /* with --json nothing is shown */
	int out;     /* an exit status: CLI_OK while it can be written */

	bool begun;       /* something was written */
	bool blank;       /* an empty line is held back, which is all that has come */
	bool interrupted; /* then that line is bash's, of a program that has printed nothing */

	struct hr_tame tame;
};

void cli_shown_init(struct cli_shown *w, bool silent);

void cli_shown_put(struct cli_shown *w, const char *p, size_t len);
/* There is no more: a line and a colour end. */
void cli_shown_end(struct cli_shown *w);

#endif
