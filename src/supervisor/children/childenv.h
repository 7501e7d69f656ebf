/* hr_childenv: the environment of workers and shells. */
#ifndef HR_SUPERVISOR_CHILDREN_CHILDENV_H
#define HR_SUPERVISOR_CHILDREN_CHILDENV_H

#include "base/err.h"

/* A copy of env without what is meant for us alone: the key, the service manager's socket, our own
 * HANDRAIL_*. The caller frees with hr_childenv_free. */
char **hr_childenv_new(char *const *env, struct hr_err *err);
void hr_childenv_free(char **env);

#endif
