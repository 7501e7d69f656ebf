/* Sets up a fresh sandbox. */
#ifndef HR_HOST_LIFE_SETUP_H
#define HR_HOST_LIFE_SETUP_H

#include "host/handle.h"

/* Checks the names of the sandbox's variables; returns -1 if one cannot be set. */
int hr_sandbox_check_env(struct hr_sandbox *s, struct hr_err *err);
/* Sets up a fresh sandbox (doc/host.md, "Variables and identity of a new sandbox"). `taken`: it
 * comes from the pool, which has done the part common to all sandboxes. */
int hr_sandbox_set_up(struct hr_sandbox *s, bool taken, struct hr_err *err);

#endif
