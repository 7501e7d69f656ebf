/* hr_journaldir: the directory with the results of actions (proto/journal.h). */
#ifndef HR_SUPERVISOR_RUN_JOURNALDIR_H
#define HR_SUPERVISOR_RUN_JOURNALDIR_H

#include "base/err.h"

struct hr_rundir;

/* Returns the journal's directory: below the state directory, for the server at `port`, or, if that
 * is "", journal in the run directory. The caller frees it; NULL without memory. */
char *hr_journaldir_path(const struct hr_rundir *r, const char *state_dir, long long port);
/* Makes the journal's directory, accessible only to this account. Returns 0, or -1 with *err set.
 */
int hr_journaldir_make(const char *path, struct hr_err *err);

#endif
