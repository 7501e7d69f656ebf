/* hr_commit: calls back right before the first change of files that others can see. Until then the
 * work can be restarted without a trace. */
#ifndef HR_FILES_PLACE_COMMIT_H
#define HR_FILES_PLACE_COMMIT_H

#include <stddef.h>

struct hr_commit {
	void (*reached)(const void *arg); /* called at least once before a change; does not fail */
	const void *arg;
};

/* Calls the callback; c may be NULL. */
static inline void
hr_commit_reached(const struct hr_commit *m)
{
	if (m != NULL)
		m->reached(m->arg);
}

#endif
