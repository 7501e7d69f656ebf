/* hr_tame: makes an untrusted program's output safe for the user's terminal. Passes colours and the
 * moves of progress bars; drops sequences that make a terminal answer (the answer would be typed at
 * the viewer's shell), change its modes, title or clipboard, or hide later text. */
#ifndef HR_BASE_TEXT_TAME_H
#define HR_BASE_TEXT_TAME_H

#include <stdbool.h>

#include "base/buf.h"

struct hr_tame {
	/* Set by the caller; all other members start as zero. */
	/* Cursor moves pass. Lines end with LF in any case. */
	bool terminal;
	bool colours;

	enum { HR_TAME_TEXT, HR_TAME_ESC, HR_TAME_CSI, HR_TAME_STRING, HR_TAME_CHARSET } part;
	bool cr;       /* holds back a CR that may belong to an LF */
	bool painted;  /* a colour is active */
	bool in_line;  /* the output does not end with a newline */
	char held[64]; /* incomplete sequence or character */
	unsigned n;
};

/* Appends the text that may pass. Splitting the input differently gives the same result. */
void hr_tame_feed(struct hr_tame *t, struct hr_buf *b, const char *p, size_t len);
/* Ends the input: resets an active colour and ends the line. */
void hr_tame_end(struct hr_tame *t, struct hr_buf *b);

#endif
