/* hr_engine_progress: prints an Engine's messages about a pull or a build as lines for people. */
#ifndef HR_HOST_DOCKER_PROGRESS_H
#define HR_HOST_DOCKER_PROGRESS_H

#include "host/docker/engine.h"

/* Prints a line, passed without its end. */
typedef void hr_engine_say_fn(void *arg, const char *text);

/* POSTs to path, with the tar file of source as the body (NULL: none), until the end. Returns -1 if
 * that failed, also if the Engine reports the failure only after a status of 200. fn may be
 * NULL. */
int hr_engine_progress(struct hr_engine *e, const char *path, hr_http_source_fn *source,
    void *source_arg, hr_engine_say_fn *fn, void *fn_arg, struct hr_err *err);

#endif
