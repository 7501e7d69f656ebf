/* egress_told: lists the box's refused connections for the box itself: a file of sentences, which
 * it sees read-only. The observation of a command has those that were added while it ran. */
#ifndef HR_EGRESS_TOLD_H
#define HR_EGRESS_TOLD_H

#include <stdint.h>
#include <sys/types.h>

#include "egress/event.h"

#define EGRESS_TOLD_DIR "box"      /* below the directory of the broker */
#define EGRESS_TOLD_FILE "refused" /* name in the directory */

struct egress_told {
	const char *dir; /* directory of the file; borrowed */
	int fd;          /* -1: none */
	off_t size;
	int64_t second; /* start of the present second, in ms */
	unsigned lines; /* number of lines since then */
};

/* Opens the file. A failure leaves the box untold, and is logged. */
void egress_told_open(struct egress_told *t, const char *dir);
void egress_told_close(struct egress_told *t);
/* Adds a refusal, unless there were many in this second. */
void egress_told_add(struct egress_told *t, const struct egress_event *e);

#endif
