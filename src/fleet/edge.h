/* hr_fleet_edge: nginx before the service: its configuration and its process. */
#ifndef HR_FLEET_EDGE_H
#define HR_FLEET_EDGE_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct hr_fleet_edge {
	const char *data_dir;   /* of the templates */
	const char *run_dir;    /* this account's alone: the configuration, the lock */
	const char *socket_dir; /* nginx's workers enter it; for root another one than run_dir */
	const char *listen;     /* "127.0.0.1:8000" */
	const char *domain;     /* NULL: none */
	const char *console;    /* "127.0.0.1:8001"; NULL: there is none */
	const char *user;       /* of nginx's workers, where we are root */
	unsigned patience_s;
};

/* Workers of root's nginx are another account's, and the state directory, which holds secrets, lets
 * no other account through: so root's socket lies below /run, by a name that follows from
 * state_dir. */
int hr_fleet_edge_socket_dir(const char *state_dir, char **ret, struct hr_err *err);
/* Makes run_dir and socket_dir; the caller has the store. */
int hr_fleet_edge_make_dirs(const struct hr_fleet_edge *e, struct hr_err *err);
/* Makes run_dir/fleet.sock lead to the socket in socket_dir, for people who look for it there. */
int hr_fleet_edge_link(const struct hr_fleet_edge *e, struct hr_err *err);
/* Removes socket_dir at the end of the service, unless it lies in the state directory. */
void hr_fleet_edge_remove_dirs(const struct hr_fleet_edge *e);

/* part: "http", "server" (what goes into those of an nginx that is there), "routes" (into a server
 * { } of its for *.DOMAIN), "wildcard" (such a server { }, without TLS), "console" (into another
 * server { }) or "all". */
int hr_fleet_edge_compose(
    struct hr_buf *out, const char *part, const struct hr_fleet_edge *e, struct hr_err *err);

/* The sockets that nginx inherits, so that no connection is refused while it is replaced. */
#define HR_FLEET_LISTENERS 2

#define HR_FLEET_UNIX "unix:" /* and a path: of sockets that are no address and port */
#define HR_FLEET_PLACE 256
/* Where this machine asks who listens at: "127.0.0.1:8000" for "8000", "*:8000", "0.0.0.0:8000". */
void hr_fleet_edge_reach(const char *at, char ret[HR_FLEET_PLACE]);

/* The one of an address that was given with --OPTION. -1 without an error (*err is empty): it is no
 * address and port; nginx opens it. */
int hr_fleet_edge_listen(const char *at, const char *option, struct hr_err *err);
/* Returns the process of nginx that a service which was killed has left; -1: there is none. Either
 * way the caller owns copies of the sockets that it or its workers have, where the kernel gives
 * them (else -1): those it listens at, and the service's own at `sock`. */
pid_t hr_fleet_edge_adopt(const struct hr_fleet_edge *e, const char *sock,
    int ret_listeners[HR_FLEET_LISTENERS], int *ret_requests);
/* A lock that nginx inherits, the caller's, or -1. Workers whose master was killed take no new
 * connection from then on, and answer what they have. */
int hr_fleet_edge_lock(const struct hr_fleet_edge *e, struct hr_err *err);
/* Writes the configuration and starts nginx with it, that lock, the service's own socket and those
 * that it listens at (-1: none): its process, or -1. */
pid_t hr_fleet_edge_start(const struct hr_fleet_edge *e, int lock, int requests,
    const int listeners[HR_FLEET_LISTENERS], struct hr_err *err);
/* It takes no new connection, answers what it has, and ends. */
void hr_fleet_edge_end(const struct hr_fleet_edge *e, pid_t nginx);
/* Writes the configuration if it is another one now (1), which an nginx that runs (> 0) takes. */
int hr_fleet_edge_reload(const struct hr_fleet_edge *e, pid_t nginx, struct hr_err *err);

#endif
