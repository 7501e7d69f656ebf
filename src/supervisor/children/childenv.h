/* hr_childenv: composes the environment of workers and shells. */
#ifndef HR_SUPERVISOR_CHILDREN_CHILDENV_H
#define HR_SUPERVISOR_CHILDREN_CHILDENV_H

#include "base/strv.h"

/* Adds env without the server's own variables: the key, the service manager's socket,
 * HANDRAIL_*. */
int hr_childenv_fill(struct hr_strv *list, char *const *env, struct hr_err *err);

#endif
