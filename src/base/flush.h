/* hr_flush: sends a buffer on a socket, as far as the peer takes it. */
#ifndef HR_BASE_FLUSH_H
#define HR_BASE_FLUSH_H

#include <stddef.h>

#include "base/buf.h"

/* Sends the bytes from *io_sent on without blocking and moves *io_sent past them. Returns 1 when
 * all are sent, 0 if the peer is slow, or -1 with errno if it has gone. Never raises SIGPIPE. */
int hr_flush(int sock, const struct hr_buf *b, size_t *io_sent);

#endif
