/* The files of the engine "local": workspaces of sandboxes that live on this machine's files, and
 * what is left of those that ended. */
#ifndef HR_FLEET_LOCAL_LOCALWORK_H
#define HR_FLEET_LOCAL_LOCALWORK_H

#include "base/err.h"

/* work: the directory of workspaces; NULL: the kind has none. */

/* The caller frees. NULL: none, or no memory. */
char *hr_local_workspace(const char *work, const char *id);
/* One that is not there is no error. */
int hr_local_remove_workspace(const char *work, const char *id, struct hr_err *err);
/* Removes what belongs to no sandbox: in the directory of records, and workspaces without one. */
int hr_local_tidy(const char *records, const char *work, struct hr_err *err);

#endif
