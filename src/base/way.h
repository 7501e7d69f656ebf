/* hr_way: finds directories that an account cannot enter, and a place for a directory of several
 * accounts. */
#ifndef HR_BASE_WAY_H
#define HR_BASE_WAY_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/account.h"

/* Returns true if the account cannot enter one of the directories that lead to `path`, `path`
 * itself included, with its name in ret_dir. Links are resolved; directories that do not exist yet
 * are skipped. account NULL: any account but the owner's, by the mode alone. With an account the
 * call forks if the mode does not decide. */
bool hr_way_barred(const char *path, const struct hr_account *account, char ret_dir[PATH_MAX]);

/* Returns the first of `bases` that is absolute, no longer than `longest`, and in which the caller
 * can make a directory that others can enter if `others` is set. NULL entries are skipped. The last
 * one is returned when no other fits. */
const char *hr_way_base(const char *const *bases, size_t n, bool others, size_t longest);

#endif
