/* hr_environ: builds the initial environment of a shell. */
#ifndef HR_SESSION_ENVIRON_H
#define HR_SESSION_ENVIRON_H

#include "base/strv.h"

struct hr_shell_user;

/* Adds this process's variables without the server's own, with those that a login as the user would
 * set, and a TERM whose description is installed. */
int hr_environ_for_shell(struct hr_strv *list, char *const *ours, const struct hr_shell_user *user,
    const char *bash, struct hr_err *err);

#endif
