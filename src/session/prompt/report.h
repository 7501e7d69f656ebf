/* hr_report: what the prompt hook writes to the report FIFO, as a stream of NUL-ended fields.
 *
 * Any process of the sandbox may write there too, so nothing is believed: a reader skips what does
 * not look like a report, finds the next one after garbage, bounds every field, and leaves it to
 * the caller to check the nonce or the process. Pure. */
#ifndef HR_SESSION_PROMPT_REPORT_H
#define HR_SESSION_PROMPT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "session/prompt/fields.h"

#define HR_REPORT_MAX (4u << 20) /* bytes of one report; longer ones are dropped */

/* Borrowed from the reader until its next call. */
struct hr_report {
	const char *nonce; /* "" from a child shell; NULL: no report */
	pid_t pid;
	int exit_code;
	pid_t job; /* last background process, -1: none yet */
	uid_t euid;
	const char *pwd; /* absolute or "" */
	const char *path;
	const char
	    *hook; /* of PROMPT_COMMAND the indices and length, and PS0: see struct hr_hook */
	const char *flags;   /* $-: letters */
	const char *options; /* $SHELLOPTS: words joined by colons */
	bool pwd_right;      /* the kernel says the same of its directory */
	const char *python;  /* see hr_python_find(); NULL: not looked for */
	int taken;           /* how many lines readline took from the FIFO so far; -1: not told */
	unsigned hides;      /* HR_HIDES_*; valid if taken is */
};

struct hr_report_reader {
	struct hr_buf in;
	size_t used; /* bytes of the last report handed out */
};

void hr_report_reader_init(struct hr_report_reader *r);
void hr_report_reader_done(struct hr_report_reader *r);

/* Out of memory or too long: what was buffered is dropped. */
void hr_report_feed(struct hr_report_reader *r, const void *p, size_t len);

/* The next whole report, or one without a nonce when more bytes are needed. */
void hr_report_next(struct hr_report_reader *r, struct hr_report *ret);

#endif
