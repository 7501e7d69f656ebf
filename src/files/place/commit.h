/* hr_commit: a callback right before the first change of files that others could see. Until
 * then the work can be done again from its beginning as if nothing had been. */
#ifndef HR_FILES_PLACE_COMMIT_H
#define HR_FILES_PLACE_COMMIT_H

#include <stddef.h>

struct hr_commit {
	void (*reached)(const void *arg); /* at least once before a change; does not fail */
	const void *arg;
};

/* NULL: nobody wants to know. */
static inline void
hr_commit_reached(const struct hr_commit *m)
{
	if (m != NULL)
		m->reached(m->arg);
}

#endif
