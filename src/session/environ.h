/* hr_environ: the environment a shell starts with. */
#ifndef HR_SESSION_ENVIRON_H
#define HR_SESSION_ENVIRON_H

#include "base/err.h"

struct hr_shell_user;

/* Ours, without what belongs to the server, with what a login as the user would set, and a TERM
 * whose description is installed. A list for execve(); NULL with *err. */
char **hr_environ_for_shell(
    char *const *ours, const struct hr_shell_user *user, const char *bash, struct hr_err *err);
void hr_environ_free(char **list); /* NULL: nothing */

#endif
