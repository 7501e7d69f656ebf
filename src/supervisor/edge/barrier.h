/* hr_barrier: a place at which nginx waits at the end of its configuration, loaded and without a
 * port, until it is let go.
 *
 * It is a FIFO beside nginx.conf, which includes it by a pattern: opening a FIFO waits for somebody
 * who writes. When it is gone the pattern fits nothing, and a reload by nginx itself passes. */
#ifndef HR_SUPERVISOR_EDGE_BARRIER_H
#define HR_SUPERVISOR_EDGE_BARRIER_H

#include "base/err.h"

/* What the configuration ends with, to be held or not. */
#define HR_BARRIER_LINE "include \"hold*\"; # nginx waits here for the rest of the sandbox\n"

struct hr_barrier {
	char *path; /* of the FIFO; NULL: there is none */
	int fd;     /* open since it was let go; -1 */
};

void hr_barrier_init(struct hr_barrier *h);

/* In the directory of nginx.conf, before nginx is started.
 *
 * Returns: 0, or -1: nobody will be held, for a directory whose name is a pattern itself or a
 * file system without FIFOs. */
int hr_barrier_make(struct hr_barrier *h, const char *dir, struct hr_err *err);

/* Whoever waits goes on; who has not come so far will not wait. */
int hr_barrier_release(struct hr_barrier *h, struct hr_err *err);

/* Takes it away: only when nobody is on the way to it, whom a name without a file would fail. */
void hr_barrier_done(struct hr_barrier *h);

#endif
