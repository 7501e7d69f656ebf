/* Manages files of the engine "local": workspaces of sandboxes on this machine's file system, and
 * the remains of ended ones. */
#ifndef HR_FLEET_LOCAL_LOCALWORK_H
#define HR_FLEET_LOCAL_LOCALWORK_H

#include "base/err.h"

/* ---- `work` is the directory of workspaces; NULL: the back-end has none ---- */

/* Returns the path of a workspace, which the caller frees; NULL if there is none, or without
 * memory. */
char *hr_local_workspace(const char *work, const char *id);
/* Removes a workspace; succeeds if there is none. */
int hr_local_remove_workspace(const char *work, const char *id, struct hr_err *err);
/* Removes files without a sandbox: in the directory of records, and among the workspaces. */
int hr_local_tidy(const char *records, const char *work, struct hr_err *err);

#endif
