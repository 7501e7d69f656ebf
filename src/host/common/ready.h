/* hr_ready: waits for a server that this process starts, by $NOTIFY_SOCKET. */
#ifndef HR_HOST_COMMON_READY_H
#define HR_HOST_COMMON_READY_H

#include <sys/types.h>

#include "base/err.h"

#define HR_READY_NAME 32

/* Opens a socket for the server's message. dir -1: its name is chosen by the kernel and written to
 * `name` in the form of $NOTIFY_SOCKET; otherwise the socket is made as `leaf`, which must be free,
 * in the directory of that descriptor. Returns a descriptor, or -1 with *err set. */
int hr_ready_open(int dir, const char *leaf, char name[HR_READY_NAME], struct hr_err *err);

/* Waits for "READY=1" of process `pid`, or for its end, which the pidfd `watch` shows. The error
 * then has the last lines of the file `log` (NULL: none). Returns 0, or -1 with *err set. */
int hr_ready_wait(int fd, pid_t pid, int watch, const char *log, struct hr_err *err);

#endif
