/* hr_fleet_helper: an engine whose calls that take long are made in a process of their own each.
 * libhandrail forks, and what a child of a process with threads may do before it executes another
 * program is next to nothing; besides, what goes wrong there takes no service with it. The helper
 * is this program again; it is killed when we end, which a successor finds as any other end. */
#ifndef HR_FLEET_HELPER_H
#define HR_FLEET_HELPER_H

#include <sys/types.h>

#include "fleet/engine.h"

struct hr_fleet_helper {
	const struct hr_fleet_engine *engine; /* whose other calls are made here */
	void *self;
	char *const *argv; /* of this program; "--call WHAT ID" is put behind it */
	int argc;
};
extern const struct hr_fleet_engine hr_fleet_helper;

/* For the next image of this program: from now on none is begun, and fn is told of those that are
 * under way. They are killed with the threads that began them, and are to be waited for. */
void hr_fleet_helper_hold(void (*fn)(void *arg, pid_t pid), void *arg);

/* In the helper: one call, with its input on stdin and its result on stdout. The exit status. */
int hr_fleet_helper_main(
    const struct hr_fleet_engine *engine, void *self, const char *what, const char *id);

#endif
