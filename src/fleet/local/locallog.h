/* hr_local_log: the end of a sandbox's logs for the engine "local". Its functions run in a process
 * of their own, which ends after some seconds. They return 0 with *ret_text, which the caller
 * frees, or -1 with *err set. */
#ifndef HR_FLEET_LOCAL_LOCALLOG_H
#define HR_FLEET_LOCAL_LOCALLOG_H

#include "base/err.h"
#include "host/handrail.h"

/* Reads the newest lines of the server's log. */
int hr_local_log(struct hr_sandbox *s, char **ret_text, struct hr_err *err);
/* Reads the newest refusals of the sandbox's network. */
int hr_local_network_log(struct hr_sandbox *s, char **ret_text, struct hr_err *err);

#endif
