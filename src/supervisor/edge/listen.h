/* hr_listen: the TCP socket of the server. It is ours, nginx inherits it: the port is claimed
 * before any work is done, and while nginx is being replaced no connection is refused. */
#ifndef HR_SUPERVISOR_EDGE_LISTEN_H
#define HR_SUPERVISOR_EDGE_LISTEN_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/err.h"

struct hr_settings;

struct hr_listen {
	struct sockaddr_storage addr;
	socklen_t len;
	char text[64]; /* "127.0.0.1:3000", "[::1]:3000": as nginx writes it */
	bool public;   /* not a loopback address */
};

/* The address: what `listen` says, or all of IPv4 when requests need a key or a client certificate
 * (or the operator wants it without), else loopback. A public address without key and permission is
 * an error. */
int hr_listen_choose(
    struct hr_listen *l, const struct hr_settings *c, bool has_key, struct hr_err *err);

/* Bound, close-on-exec, not yet listening: a client is refused until then. HR_E_BUSY: somebody else
 * has the port. */
int hr_listen_bind(const struct hr_listen *l, struct hr_err *err);
int hr_listen_start(int fd, const struct hr_listen *l, struct hr_err *err); /* may be HR_E_BUSY */

/* Where we can reach ourselves: loopback for the wildcard addresses. */
void hr_listen_self(const struct hr_listen *l, struct sockaddr_storage *ret);

#endif
