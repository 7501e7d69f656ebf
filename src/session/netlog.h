/* netlog: lines for an observation about connections that were refused while a command ran. The
 * broker of a box (handrail-egress(8)) writes them to a file that the box cannot change. */
#ifndef HR_SESSION_NETLOG_H
#define HR_SESSION_NETLOG_H

#include <sys/types.h>

#include "base/buf.h"

struct hr_netlog {
	const char *path; /* a line each: time, target, and a sentence without its full stop; NULL:
			     no file */
	ino_t file;
	off_t at;    /* end of what was reported */
	off_t begun; /* end of the file when the current command began */
};

/* Marks the start of a command. */
void hr_netlog_begin(struct hr_netlog *l);
/* Appends a line for each different sentence that no observation has had, with its number if there
 * were several. A sentence may come a moment after its command. */
void hr_netlog_why(struct hr_netlog *l, struct hr_buf *out);

#endif
