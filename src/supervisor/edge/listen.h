/* hr_listen: opens the server's socket, TCP or Unix. The supervisor owns it and nginx inherits it:
 * the address is claimed before any work is done, and while nginx is replaced no connection is
 * refused. A Unix socket is bound to a name of its own, PATH~XXXXXX, and then renamed to PATH. This
 * replaces the socket of a dead server in one step. nginx knows only the first name, which no later
 * server uses: an nginx whose supervisor was killed removes the names of its sockets at its end. */
#ifndef HR_SUPERVISOR_EDGE_LISTEN_H
#define HR_SUPERVISOR_EDGE_LISTEN_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/err.h"

struct hr_settings;

#define HR_LISTEN_TEXT (sizeof(((struct sockaddr_un *)0)->sun_path) + sizeof("unix:"))

struct hr_listen {
	struct sockaddr_storage addr;
	socklen_t len;
	/* the address: "127.0.0.1:3000", "[::1]:3000" or "unix:/run/box.sock" */
	char text[HR_LISTEN_TEXT];
	/* the same address, or the name to which a Unix socket is bound */
	char nginx[HR_LISTEN_TEXT];
	bool public;      /* the address is neither a loopback address nor a Unix socket */
	struct stat file; /* status of the Unix socket that this process has opened */
};

/* Chooses the address: the setting `listen`, or all of IPv4 if requests require a key or a client
 * certificate (or the administrator permits none), otherwise loopback. A public address without a
 * key or permission is an error, and so is a Unix socket in a directory in which others may
 * write. */
int hr_listen_choose(
    struct hr_listen *l, const struct hr_settings *c, bool has_key, struct hr_err *err);

/* Binds, close-on-exec. At a TCP address clients are refused until hr_listen_start(), at a Unix
 * socket they wait. Fails with HR_E_BUSY if another process has the address. A file at the path of
 * a Unix socket that is not a socket is an error and stays. */
int hr_listen_bind(struct hr_listen *l, struct hr_err *err);
/* Listens; may fail with HR_E_BUSY. */
int hr_listen_start(int fd, const struct hr_listen *l, struct hr_err *err);
/* Returns fd, the previous image's socket (-1: none), if it is the one of this address; otherwise
 * closes it, removes its file, and returns -1. */
int hr_listen_take(struct hr_listen *l, int fd);
/* Closes *fd unless it is -1, sets it to -1, and removes the file of a Unix socket unless another
 * server has replaced it. */
void hr_listen_close(const struct hr_listen *l, int *fd);

/* Returns an address to reach the server itself: loopback for a wildcard address. */
void hr_listen_self(const struct hr_listen *l, struct sockaddr_storage *ret);

#endif
