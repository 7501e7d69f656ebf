/* hr_fleet_helper: runs each long call of an engine in a process of its own. libhandrail forks, and
 * the child of a process with threads may do next to nothing before it executes another program;
 * besides, a crash there does not end the service. The helper is this program, executed again; it
 * is killed when the service ends, which the next service handles like any other interrupted
 * call. */
#ifndef HR_FLEET_HELPER_H
#define HR_FLEET_HELPER_H

#include <sys/types.h>

#include "fleet/engine.h"

struct hr_fleet_helper {
	/* engine that makes the short calls, in this process */
	const struct hr_fleet_engine *engine;
	void *self;
	char *const *argv; /* arguments of this program; "--call WHAT ID" is appended */
	int argc;
};
extern const struct hr_fleet_engine hr_fleet_helper;

/* Stops starting helpers, for the next image of this program, and calls fn for each running one.
 * They are killed with the threads that started them, and the next image must wait for them. */
void hr_fleet_helper_hold(void (*fn)(void *arg, pid_t pid), void *arg);

/* Runs one call in the helper, from stdin to stdout. Returns the exit status. */
int hr_fleet_helper_main(
    const struct hr_fleet_engine *engine, void *self, const char *what, const char *id);

#endif
