/* hr_cloud_actions_int: internal helpers of actions.c and copies.c (shared.c). */
#ifndef HR_HOST_CLOUD_ACTIONS_INT_H
#define HR_HOST_CLOUD_ACTIONS_INT_H

#include "host/cloud/cloud.h"

#define HR_CLOUD_LINE_MAX (1u << 20) /* maximum bytes of a command of handrail's own */

/* Runs a command of handrail's own. Returns 0 with its status, or -1 with *err set. `out` gets its
 * output; NULL: the output is ignored. The caller calls hr_buf_done(out) in both cases. */
int hr_cloud_helper(
    struct hr_cloud *c, const char *line, struct hr_buf *out, int *ret_status, struct hr_err *err);
/* Runs "BEFORE 'path' AFTER" in the same way. */
int hr_cloud_helper_on(struct hr_cloud *c, const char *before, const char *path, const char *after,
    struct hr_buf *out, int *ret_status, struct hr_err *err);
const char *hr_cloud_workspace(const struct hr_cloud *c);
/* Returns an absolute path, which the caller frees. */
char *hr_cloud_absolute(const struct hr_cloud *c, const char *path, struct hr_err *err);
/* Extends the sandbox's lifetime by the given time and a margin. */
int hr_cloud_keep(struct hr_cloud *c, double seconds, struct hr_err *err);
/* Creates the directory c->mirror, readable only by the user. */
int hr_cloud_mirror(struct hr_cloud *c, struct hr_err *err);
/* Writes a file on this machine and creates its directories. */
int hr_cloud_save(const char *file, const char *p, size_t len, struct hr_err *err);

#endif
