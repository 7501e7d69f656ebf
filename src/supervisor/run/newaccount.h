/* hr_newaccount: adds an account where no passwords are kept, as in a box. */
#ifndef HR_SUPERVISOR_RUN_NEWACCOUNT_H
#define HR_SUPERVISOR_RUN_NEWACCOUNT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* Returns true if the account has a group of its own, and not that of root: for the name `user`, as
 * in the templates of E2B. */
bool hr_newaccount_has_group(const char *name);

/* Adds an account as does `useradd -rm -d HOMES/NAME -s /bin/bash -g root -G sudo -u UID NAME`.
 * `name` is one that hr_identity_name_ok() accepts. Returns 1; 0 where the caller is not root, or
 * where `etc` has passwords, no group sudo or no file of accounts: then nothing was done, and
 * useradd is needed; or -1 with *err. */
int hr_newaccount_add(
    const char *etc, const char *homes, const char *name, uid_t uid, struct hr_err *err);

/* Makes `gid` the account's primary group, as does `usermod -g`, and adds a group of that number if
 * there is none. Files in the account's home directory that have its former group get the new one.
 * Returns 0, or -1 with *err. */
int hr_newaccount_set_group(const char *etc, const char *name, gid_t gid, struct hr_err *err);

#endif
