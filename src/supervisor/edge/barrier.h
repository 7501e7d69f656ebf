/* hr_barrier: holds nginx at the end of its configuration, loaded but without a port, until
 * released.
 *
 * The barrier is a FIFO beside nginx.conf, which includes it by a pattern: opening a FIFO blocks
 * until it has a writer. Once removed, the pattern matches nothing, so a reload by nginx passes. */
#ifndef HR_SUPERVISOR_EDGE_BARRIER_H
#define HR_SUPERVISOR_EDGE_BARRIER_H

#include "base/err.h"

/* the configuration ends with this line, whether nginx is held or not */
#define HR_BARRIER_LINE "include \"hold*\"; # nginx waits here for the rest of the sandbox\n"

struct hr_barrier {
	char *path; /* path of the FIFO; NULL: there is none */
	int fd;     /* descriptor of the FIFO after the release; -1 before */
};

void hr_barrier_init(struct hr_barrier *h);

/* Makes the barrier in the directory of nginx.conf, before nginx is started. Returns 0, or -1 if
 * nginx cannot be held: the directory's name is a pattern itself, or its file system has no
 * FIFOs. */
int hr_barrier_make(struct hr_barrier *h, const char *dir, struct hr_err *err);

/* Releases a waiting nginx; a later one does not wait. */
int hr_barrier_release(struct hr_barrier *h, struct hr_err *err);

/* Removes the FIFO: only when no nginx is about to open it, which would then fail. */
void hr_barrier_done(struct hr_barrier *h);

#endif
