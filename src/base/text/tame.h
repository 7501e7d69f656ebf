/* hr_tame: what a program of somebody else's printed, for a terminal of ours. Colours and what
 * progress bars need pass; nothing that makes a terminal answer (the answer would be typed at the
 * shell of who looks on), changes its modes, title or clipboard, or hides what follows. */
#ifndef HR_BASE_TEXT_TAME_H
#define HR_BASE_TEXT_TAME_H

#include <stdbool.h>

#include "base/buf.h"

struct hr_tame {
	/* What the caller sets; all else is zero at first. */
	/* Moves of the cursor pass. Lines end with LF in any case. */
	bool terminal;
	bool colours;

	enum { HR_TAME_TEXT, HR_TAME_ESC, HR_TAME_CSI, HR_TAME_STRING, HR_TAME_CHARSET } part;
	bool cr;       /* a CR that may belong to an LF is held back */
	bool painted;  /* a colour holds */
	bool in_line;  /* the last thing that came out was no end of a line */
	char held[64]; /* of a sequence, or of a character, that is not whole yet */
	unsigned n;
};

/* Appends what may pass. The same however the input is cut. */
void hr_tame_feed(struct hr_tame *t, struct hr_buf *b, const char *p, size_t len);
/* There is no more: a colour that holds ends, and so does the line. */
void hr_tame_end(struct hr_tame *t, struct hr_buf *b);

#endif
