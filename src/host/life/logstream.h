/* hr_logstream: runs a thread that follows a sandbox's log (doc/host.md, "Logs"). */
#ifndef HR_HOST_LIFE_LOGSTREAM_H
#define HR_HOST_LIFE_LOGSTREAM_H

#include "host/handle.h"

/* Starts logging the container's lines if the environment has DEBUG_RUNTIME. Logs a failure. */
void hr_logstream_debug(struct hr_sandbox *s);

#endif
