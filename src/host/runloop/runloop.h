/* hr_runloop: connects to the provider Runloop: devboxes and their files (runloop.c), commands
 * (exec.c). */
#ifndef HR_HOST_RUNLOOP_RUNLOOP_H
#define HR_HOST_RUNLOOP_RUNLOOP_H

#include "host/cloud/cloud.h"

#define HR_RUNLOOP_WHO "Runloop"
#define HR_RUNLOOP_PATH "/v1/devboxes/" /* prefix of paths; an id follows */

/* ---- runloop.c ---- */

/* Sends a POST and takes ownership of body; *ret (may be NULL) belongs to the caller. */
int hr_runloop_post(struct hr_cloud *c, const char *id, const char *what, struct json_object *body,
    struct json_object **ret, struct hr_err *err);
/* Makes a long poll. Returns 1 with *ret, which the caller owns, 0 if the state was not reached, or
 * -1 with *err set. */
int hr_runloop_poll(struct hr_cloud *c, const char *what, const char *const *words, int watch_fd,
    struct json_object **ret, struct hr_err *err);
int
hr_runloop_put(struct hr_cloud *c, const char *path, const char *p, size_t len, struct hr_err *err);

/* ---- exec.c ---- */

int hr_runloop_exec(struct hr_cloud *c, const struct hr_cloud_command *q, struct hr_cloud_end *ret,
    struct hr_err *err);
int hr_runloop_launch(struct hr_cloud *c, const char *line, struct hr_err *err);

#endif
