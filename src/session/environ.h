/* hr_environ: the environment a shell starts with. */
#ifndef HR_SESSION_ENVIRON_H
#define HR_SESSION_ENVIRON_H

#include "base/strv.h"

struct hr_shell_user;

/* Adds ours, without what belongs to the server, with what a login as the user would set, and a
 * TERM whose description is installed. */
int hr_environ_for_shell(struct hr_strv *list, char *const *ours, const struct hr_shell_user *user,
    const char *bash, struct hr_err *err);

#endif
