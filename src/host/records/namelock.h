/* hr_namelock: admits one process at a time to create the sandbox of a name. */
#ifndef HR_HOST_RECORDS_NAMELOCK_H
#define HR_HOST_RECORDS_NAMELOCK_H

#include <stdbool.h>

#include "host/handrail.h"

struct hr_namelock {
	int fd; /* -1: the lock is not held */
	char *path;
};

/* Takes the lock at once, or fails if another process has it; a process that dies releases it.
 * Creates the directory. */
int
hr_namelock_take(struct hr_namelock *l, const char *state_dir, const char *sid, struct hr_err *err);
/* Releases the lock, if it is held. */
void hr_namelock_drop(struct hr_namelock *l);
/* Takes the lock if a process that died has left its file. Returns false if there is none, or it is
 * held. */
bool hr_namelock_take_left(struct hr_namelock *l, const char *state_dir, const char *sid);

#endif
