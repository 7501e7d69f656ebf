/* What a command prints, on the terminal or into the pipe of who looks on: without the echo of its
 * text, and with nothing that a terminal would act upon. */
#ifndef HR_CLI_SHOWN_H
#define HR_CLI_SHOWN_H

#include "base/buf.h"
#include "base/tame.h"
#include "cli/cli.h"

struct cli_shown {
	bool silent; /* with --json nothing is shown */
	int out;     /* an exit status: CLI_OK while it can be written */

	bool begun;       /* something was written */
	bool blank;       /* an empty line is held back, which is all that has come */
	bool interrupted; /* then that line is bash's, of a program that has printed nothing */

	struct hr_tame tame;
	bool echo;          /* what comes is the echo of: */
	size_t length;      /* a text of so many bytes, */
	struct hr_buf text; /* of which the beginning is known */
	size_t echoed;
	struct hr_buf held; /* bytes of the echo, until it is known that they are */
};

void cli_shown_init(struct cli_shown *w, bool silent);
void cli_shown_done(struct cli_shown *w);

/* What comes first is the terminal's echo of this text. */
void cli_shown_expect(struct cli_shown *w, const struct hr_buf *text, size_t length);
/* Bytes are missing before what comes: it is no echo. */
void cli_shown_lost(struct cli_shown *w);
void cli_shown_put(struct cli_shown *w, const char *p, size_t len);
/* There is no more: a line and a colour end. */
void cli_shown_end(struct cli_shown *w);

#endif
