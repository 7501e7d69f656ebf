/* hr_oldplugins: the plugins of the image before us. An upgrade leaves them running, and those of a
 * killed predecessor may not have ended yet; their sockets are not ours, but what they hold, such
 * as a port, is what ours need.
 *
 * DIR/plugin/NAME.pid says which process group one is: its leader and when that started. */
#ifndef HR_SUPERVISOR_OLDPLUGINS_H
#define HR_SUPERVISOR_OLDPLUGINS_H

#include <sys/types.h>

#include "base/err.h"

struct hr_rundir;

/* Of a plugin that was just started. A failure only leaves it to a successor. */
int hr_oldplugins_note(const struct hr_rundir *r, const char *name, pid_t pid, struct hr_err *err);
void hr_oldplugins_forget(const struct hr_rundir *r, const char *name);

/* Before the directory is made ready: they have a second to end, then they are killed. */
void hr_oldplugins_end(const struct hr_rundir *r);

#endif
