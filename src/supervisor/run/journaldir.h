/* hr_journaldir: the directory with the results of actions (proto/journal.h). */
#ifndef HR_SUPERVISOR_RUN_JOURNALDIR_H
#define HR_SUPERVISOR_RUN_JOURNALDIR_H

#include "base/err.h"

struct hr_context;

/* Sets ctx->journal, the journal's directory: below the state directory, by the server's port,
 * where it is made; or journal in the run directory, if there is no state directory or if commands
 * of this account may have made it unusable. Command lines of children name it. Returns 0, or -1
 * with *err set. */
int hr_journaldir_choose(struct hr_context *ctx, struct hr_err *err);
/* Makes the journal's directory, accessible only to this account. Returns 0, or -1 with *err set.
 */
int hr_journaldir_make(const char *path, struct hr_err *err);

#endif
