/* hr_oldplugins: ends the plugins of the previous image. An upgrade leaves them running, and those
 * of a killed predecessor may still run; their sockets do not matter, but the new plugins need
 * resources that they hold, such as a port. DIR/plugin/NAME.pid records a plugin's process group:
 * its leader, the leader's start time, and whether it kept state. */
#ifndef HR_SUPERVISOR_CHILDREN_OLDPLUGINS_H
#define HR_SUPERVISOR_CHILDREN_OLDPLUGINS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct hr_rundir;

/* These flags describe a plugin to a successor. */
enum {
	HR_OLDPLUGIN_KEEPS = 1,    /* the plugin was ready once, so its end loses state */
	HR_OLDPLUGIN_OUTLIVES = 2, /* SIGHUP ends the plugin, which the successor starts at once */
};

/* Records a plugin that was just started or got ready; pid 0 means that it ended by itself and was
 * not restarted. A failure only matters to a successor. */
int hr_oldplugins_note(
    const struct hr_rundir *r, const char *name, pid_t pid, unsigned what, struct hr_err *err);
void hr_oldplugins_forget(const struct hr_rundir *r, const char *name);

/* Returns what a predecessor recorded of a plugin; 0: nothing. hr_oldplugins_end() ends all of
 * them: killed after three seconds. Call both before the run directory is prepared. */
unsigned hr_oldplugins_known(const struct hr_rundir *r, const char *name);
void hr_oldplugins_end(const struct hr_rundir *r);

#endif
