/* hr_actin: reads a worker's request in a plugin, on a non-blocking connection. */
#ifndef HR_PROTO_ACTIN_H
#define HR_PROTO_ACTIN_H

#include "base/buf.h"
#include "base/err.h"
#include "proto/frame.h"

#define HR_ACTIN_STEP (64u << 10) /* bytes per read */
/* cap of a buffer for one request */
#define HR_ACTIN_MAX (HR_FRAME_MAX + HR_FRAME_HEADER + HR_ACTIN_STEP)

/* Reads the available bytes into b. Returns 1 with a whole request in *ret, which borrows from b;
 * 0: not yet; -1: malformed, no memory, or the worker has gone (HR_E_GONE). */
int hr_actin_read(int fd, struct hr_buf *b, struct hr_act_request *ret, struct hr_err *err);

#endif
