/* hr_engine_progress: reads an Engine's messages about a pull or a build, or prints them as lines
 * for people. */
#ifndef HR_HOST_DOCKER_PROGRESS_H
#define HR_HOST_DOCKER_PROGRESS_H

#include "host/docker/engine.h"

/* Receives a message; `failed` is the last error so far, "" for none. */
typedef void hr_engine_message_fn(void *arg, struct json_object *o, const char *failed);

/* POSTs to path, with the tar file of source as the body (NULL: none), and reads the answer to its
 * end. Returns -1 if that failed, with `code` if the Engine reports the failure only after a status
 * of 200. */
int hr_engine_messages(struct hr_engine *e, const char *path, hr_http_source_fn *source,
    void *source_arg, hr_engine_message_fn *fn, void *fn_arg, enum hr_errc code,
    struct hr_err *err);

/* Prints a line, passed without its end. */
typedef void hr_engine_say_fn(void *arg, const char *text);

/* Does the same and prints the messages; fn may be NULL. */
int hr_engine_progress(struct hr_engine *e, const char *path, hr_http_source_fn *source,
    void *source_arg, hr_engine_say_fn *fn, void *fn_arg, struct hr_err *err);

#endif
