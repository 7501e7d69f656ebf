/* What a fresh sandbox is given. */
#ifndef HR_HOST_LIFE_SETUP_H
#define HR_HOST_LIFE_SETUP_H

#include "host/handle.h"

/* Names of variables that could not be set: -1. */
int hr_sandbox_check_env(struct hr_sandbox *s, struct hr_err *err);
/* What a fresh sandbox is given (doc/host.md, "What a fresh sandbox is given"). taken: it has what
 * all of its kind get. */
int hr_sandbox_set_up(struct hr_sandbox *s, bool taken, struct hr_err *err);

#endif
