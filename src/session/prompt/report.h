/* hr_report: reads the prompt hook's reports to the report FIFO, a stream of NUL-terminated fields.
 * Any process of the sandbox may write there too, so nothing is trusted: a reader skips data that
 * does not look like a report, finds the next report after garbage, bounds every field, and leaves
 * it to the caller to check the nonce or the process. Pure. */
#ifndef HR_SESSION_PROMPT_REPORT_H
#define HR_SESSION_PROMPT_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "session/prompt/fields.h"

#define HR_REPORT_MAX (4u << 20) /* maximum bytes of a report; longer ones are dropped */

/* One report, borrowed from the reader until its next call. */
struct hr_report {
	const char *nonce; /* "": sent by a child shell; NULL: there is no report */
	pid_t pid;
	int exit_code;
	pid_t job; /* last background process; -1: none yet */
	uid_t euid;
	const char *pwd; /* absolute path, or "" */
	const char *path;
	const char *hook;    /* indices and length of PROMPT_COMMAND, and PS0: see struct hr_hook */
	const char *flags;   /* letters of $- */
	const char *options; /* $SHELLOPTS: words separated by colons */
	bool pwd_right;      /* the kernel reports the same directory */
	const char *python;  /* see hr_python_find(); NULL: not searched */
	int taken;           /* number of lines that readline took from the FIFO; -1: unknown */
	unsigned hides;      /* HR_HIDES_*; valid if `taken` is */
};

struct hr_report_reader {
	struct hr_buf in;
	size_t used; /* bytes of the last report returned */
};

void hr_report_reader_init(struct hr_report_reader *r);
void hr_report_reader_done(struct hr_report_reader *r);

/* Adds bytes. Without memory or over the limit the buffered bytes are dropped. */
void hr_report_feed(struct hr_report_reader *r, const void *p, size_t len);

/* Returns the next whole report, or one without a nonce if more bytes are needed. */
void hr_report_next(struct hr_report_reader *r, struct hr_report *ret);

#endif
