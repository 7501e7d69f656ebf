/* hr_moment: whoever changes files tells right before the first change that others could see. Until
 * then the work can be done again from its beginning as if nothing had been. */
#ifndef HR_FILES_PLACE_MOMENT_H
#define HR_FILES_PLACE_MOMENT_H

#include <stddef.h>

struct hr_moment {
	void (*reached)(const void *arg); /* at least once before a change; does not fail */
	const void *arg;
};

/* NULL: nobody wants to know. */
static inline void
hr_moment_reach(const struct hr_moment *m)
{
	if (m != NULL)
		m->reached(m->arg);
}

#endif
