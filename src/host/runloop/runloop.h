/* The provider Runloop: devboxes and their files (runloop.c), commands in them (exec.c). */
#ifndef HR_HOST_RUNLOOP_RUNLOOP_H
#define HR_HOST_RUNLOOP_RUNLOOP_H

#include "host/cloud/cloud.h"

#define HR_RUNLOOP_WHO "Runloop"
#define HR_RUNLOOP_PATH "/v1/devboxes/" /* which an id follows */

/* ---- runloop.c ---- */

/* body is taken; *ret (may be NULL) is the caller's. */
int hr_runloop_post(struct hr_cloud *c, const char *id, const char *what, struct json_object *body,
    struct json_object **ret, struct hr_err *err);
/* A long poll: 1 with *ret, the caller's; 0: not yet; -1. */
int hr_runloop_poll(struct hr_cloud *c, const char *what, const char *const *words, int watch_fd,
    struct json_object **ret, struct hr_err *err);
int
hr_runloop_put(struct hr_cloud *c, const char *path, const char *p, size_t len, struct hr_err *err);

/* ---- exec.c ---- */

int hr_runloop_exec(struct hr_cloud *c, const struct hr_cloud_command *q, struct hr_cloud_end *ret,
    struct hr_err *err);
int hr_runloop_launch(struct hr_cloud *c, const char *line, struct hr_err *err);

#endif
