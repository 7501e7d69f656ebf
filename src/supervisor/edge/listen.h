/* hr_listen: the server's TCP socket. The supervisor owns it and nginx inherits it: the port is
 * claimed before any work is done, and while nginx is replaced no connection is refused. */
#ifndef HR_SUPERVISOR_EDGE_LISTEN_H
#define HR_SUPERVISOR_EDGE_LISTEN_H

#include <stdbool.h>
#include <sys/socket.h>

#include "base/err.h"

struct hr_settings;

struct hr_listen {
	struct sockaddr_storage addr;
	socklen_t len;
	char text[64]; /* "127.0.0.1:3000", "[::1]:3000": nginx's notation */
	bool public;   /* not a loopback address */
};

/* Chooses the address: the setting `listen`, or all of IPv4 if requests require a key or a client
 * certificate (or the administrator permits none), otherwise loopback. A public address without a
 * key or permission is an error. */
int hr_listen_choose(
    struct hr_listen *l, const struct hr_settings *c, bool has_key, struct hr_err *err);

/* Binds, close-on-exec, without listening: clients are refused until then. HR_E_BUSY: another
 * process has the port. */
int hr_listen_bind(const struct hr_listen *l, struct hr_err *err);
int hr_listen_start(int fd, const struct hr_listen *l, struct hr_err *err); /* may be HR_E_BUSY */

/* Returns an address to reach the server itself: loopback for a wildcard address. */
void hr_listen_self(const struct hr_listen *l, struct sockaddr_storage *ret);

#endif
