/* hr_namelock: one process at a time makes the sandbox of a name. */
#ifndef HR_HOST_RECORDS_NAMELOCK_H
#define HR_HOST_RECORDS_NAMELOCK_H

#include "host/handrail.h"

struct hr_namelock {
	int fd; /* -1: not held */
	char *path;
};

/* At once, or an error if another process has it; whoever dies gives it back. The directory is
 * made.
 */
int
hr_namelock_take(struct hr_namelock *l, const char *state_dir, const char *sid, struct hr_err *err);
/* Also of one that is not held. */
void hr_namelock_drop(struct hr_namelock *l);
/* Removes the file that one who died has left. */
void hr_namelock_clear(const char *state_dir, const char *sid);

#endif
