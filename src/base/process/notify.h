/* hr_notify: sends notifications to systemd (sd_notify(3)), without its library. */
#ifndef HR_BASE_PROCESS_NOTIFY_H
#define HR_BASE_PROCESS_NOTIFY_H

#include "base/err.h"

struct hr_notify {
	int fd; /* connected socket; -1: no service manager */
};

/* Connects to `socket`, the value of $NOTIFY_SOCKET: a path or "@name" for an abstract one; NULL or
 * "": none. */
int hr_notify_open(struct hr_notify *n, const char *socket, struct hr_err *err);
/* Sends one datagram of "NAME=value" lines. Never blocks and ignores failures. */
void hr_notify_send(const struct hr_notify *n, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void hr_notify_close(struct hr_notify *n);

#endif
