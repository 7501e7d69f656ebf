/* hr_childenv: the environment of workers and shells. */
#ifndef HR_SUPERVISOR_CHILDREN_CHILDENV_H
#define HR_SUPERVISOR_CHILDREN_CHILDENV_H

#include "base/strv.h"

/* Adds env without what is meant for us alone: the key, the service manager's socket, our own
 * HANDRAIL_*. */
int hr_childenv_fill(struct hr_strv *list, char *const *env, struct hr_err *err);

#endif
