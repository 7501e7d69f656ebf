/* What actions.c and copies.c share (shared.c). */
#ifndef HR_HOST_CLOUD_ACTIONS_INT_H
#define HR_HOST_CLOUD_ACTIONS_INT_H

#include "host/cloud/cloud.h"

#define HR_CLOUD_LINE_MAX (1u << 20) /* of a command of ours */

/* A command of handrail's own: its status, and what it printed (NULL: nobody asks); the caller is
 * done with *out in both cases. */
int hr_cloud_helper(
    struct hr_cloud *c, const char *line, struct hr_buf *out, int *ret_status, struct hr_err *err);
/* "BEFORE 'path' AFTER" */
int hr_cloud_helper_on(struct hr_cloud *c, const char *before, const char *path, const char *after,
    struct hr_buf *out, int *ret_status, struct hr_err *err);
const char *hr_cloud_workspace(const struct hr_cloud *c);
/* An absolute path; the caller frees. */
char *hr_cloud_absolute(const struct hr_cloud *c, const char *path, struct hr_err *err);
/* It is in use: it is to live as long as what is begun now, and a while. */
int hr_cloud_keep(struct hr_cloud *c, double seconds, struct hr_err *err);
/* c->mirror is there, the user's alone. */
int hr_cloud_mirror(struct hr_cloud *c, struct hr_err *err);
/* A file of this machine, with its directories. */
int hr_cloud_save(const char *file, const char *p, size_t len, struct hr_err *err);

#endif
