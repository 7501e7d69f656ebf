/* hr_actin: how a plugin reads the request of a worker, on a connection that does not block. */
#ifndef HR_PROTO_ACTIN_H
#define HR_PROTO_ACTIN_H

#include "base/buf.h"
#include "base/err.h"
#include "proto/frame.h"

#define HR_ACTIN_STEP (64u << 10) /* what is read at once */
/* The cap of a buffer for one request. */
#define HR_ACTIN_MAX (HR_FRAME_MAX + HR_FRAME_HEADER + HR_ACTIN_STEP)

/* Reads what has come, into b. 1: it is a whole request, and *ret borrows from b; 0: not yet; -1:
 * it is none, there is no memory, or the worker has gone (HR_E_GONE). */
int hr_actin_read(int fd, struct hr_buf *b, struct hr_act_request *ret, struct hr_err *err);

#endif
