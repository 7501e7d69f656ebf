/* hr_live: what the handlers of /handrail/v1/ share. */
#ifndef HR_WORKER_LIVE_H
#define HR_WORKER_LIVE_H

#include "base/err.h"
#include "proto/httperr.h"

/* 503: the shell's keeper may be about to be replaced, which is a matter of a moment. */
void hr_live_refuse(struct hr_answer *ret, const struct hr_err *err);

#endif
