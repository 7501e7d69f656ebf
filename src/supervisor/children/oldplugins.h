/* hr_oldplugins: the plugins of the image before us. An upgrade leaves them running, and those of a
 * killed predecessor may not have ended yet; their sockets are not ours, but what they hold, such
 * as a port, is what ours need.
 *
 * DIR/plugin/NAME.pid says which process group one is: its leader, when that started, and whether
 * it kept something. */
#ifndef HR_SUPERVISOR_CHILDREN_OLDPLUGINS_H
#define HR_SUPERVISOR_CHILDREN_OLDPLUGINS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct hr_rundir;

/* Of a plugin that was just started or got ready; pid 0: it ended unasked and has not been started
 * again. keeps: it was ready once, so that with it something is lost. A failure only leaves it to a
 * successor. */
int hr_oldplugins_note(
    const struct hr_rundir *r, const char *name, pid_t pid, bool keeps, struct hr_err *err);
void hr_oldplugins_forget(const struct hr_rundir *r, const char *name);

/* Before the directory is made ready: whether something was lost with a predecessor's plugin; and
 * the end of all of them: they have three seconds, then they are killed. */
bool hr_oldplugins_lost(const struct hr_rundir *r, const char *name);
void hr_oldplugins_end(const struct hr_rundir *r);

#endif
