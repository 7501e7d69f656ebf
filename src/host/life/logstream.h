/* hr_logstream: a sandbox's log, followed by a thread of its own (doc/host.md, "Logs"). */
#ifndef HR_HOST_LIFE_LOGSTREAM_H
#define HR_HOST_LIFE_LOGSTREAM_H

#include "host/handle.h"

/* If the environment has DEBUG_RUNTIME, the lines of a container become lines for people. A failure
 * is logged. */
void hr_logstream_debug(struct hr_sandbox *s);

#endif
