/* hr_fleet_edge: runs nginx in front of the service: its configuration and its process. */
#ifndef HR_FLEET_EDGE_H
#define HR_FLEET_EDGE_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct hr_fleet_edge {
	const char *data_dir; /* directory of the templates */
	/* directory of the configuration and the lock; only this account enters it */
	const char *run_dir;
	/* directory that nginx's workers enter; as root it differs from run_dir */
	const char *socket_dir;
	const char *listen;  /* address such as "127.0.0.1:8000" */
	const char *domain;  /* NULL: there is none */
	const char *console; /* address such as "127.0.0.1:8001"; NULL: none */
	const char *user;    /* account of nginx's workers, if we are root */
	unsigned patience_s;
};

/* Sets *ret to the directory of the service's socket. Workers of root's nginx run as another
 * account, which cannot enter the state directory, because that holds secrets; so root's socket
 * lies below /run, under a name derived from state_dir. */
int hr_fleet_edge_socket_dir(const char *state_dir, char **ret, struct hr_err *err);
/* Makes run_dir, the directory of sockets in it, and socket_dir; the caller holds the store. */
int hr_fleet_edge_make_dirs(const struct hr_fleet_edge *e, struct hr_err *err);
/* Links run_dir/fleet.sock to the socket in socket_dir, for people who look for it there. */
int hr_fleet_edge_link(const struct hr_fleet_edge *e, struct hr_err *err);
/* Removes socket_dir at the end of the service, unless it lies in the state directory. */
void hr_fleet_edge_remove_dirs(const struct hr_fleet_edge *e);

/* Appends one part of the configuration: "http" or "server" (to include in those blocks of an
 * existing nginx), "routes" (to include in its server { } for *.DOMAIN), "wildcard" (such a server
 * { }, without TLS), "console" (to include in another server { }) or "all". */
int hr_fleet_edge_compose(
    struct hr_buf *out, const char *part, const struct hr_fleet_edge *e, struct hr_err *err);

/* number of sockets that nginx inherits, so that no connection is refused while nginx is
 * replaced */
#define HR_FLEET_LISTENERS 2

#define HR_FLEET_UNIX "unix:" /* prefix of a listener that is a path, not an address and port */
#define HR_FLEET_PLACE 256
/* Directory of sandboxes' sockets, below the state directory. It is open to all accounts, and the
 * one above it to none: nginx's workers reach it through a descriptor, which they inherit. */
#define HR_FLEET_SOCKETS "run/sockets"
#define HR_FLEET_SOCKETS_FD 7
/* Suffix of a second socket of a sandbox, at which handrail-envd takes the calls of processes
 * without the sandbox's nginx; beside the server's own socket it has the same suffix. */
#define HR_FLEET_DIRECT ".envd"
bool hr_fleet_is_unix(const char *at);
/* Writes the address at which a client on this machine connects to the listener `at`:
 * "127.0.0.1:8000" for "8000", "*:8000" and "0.0.0.0:8000". */
void hr_fleet_edge_reach(const char *at, char ret[HR_FLEET_PLACE]);

/* Returns a socket that listens at the address given with --OPTION. Returns -1 with *err empty if
 * `at` is not an address and port: nginx opens it then. */
int hr_fleet_edge_listen(const char *at, const char *option, struct hr_err *err);
/* Returns the nginx process that a killed service left, or -1 if there is none that
 * hr_fleet_edge_has_sockets(). Either way the caller owns copies of the sockets that nginx or its
 * workers hold, where the kernel permits copying (else -1): the listeners, and the service's own
 * socket at `sock`. */
pid_t hr_fleet_edge_adopt(const struct hr_fleet_edge *e, const char *sock,
    int ret_listeners[HR_FLEET_LISTENERS], int *ret_requests);
/* Returns false if nginx cannot reach the sockets of sandboxes: an earlier release started it with
 * another directory of sockets, or with none. */
bool hr_fleet_edge_has_sockets(const struct hr_fleet_edge *e, pid_t nginx);
/* Returns the descriptor of a lock that nginx inherits, which the caller owns, or -1. Workers whose
 * master was killed accept no connection from then on, and finish their requests. */
int hr_fleet_edge_lock(const struct hr_fleet_edge *e, struct hr_err *err);
/* Writes the configuration and starts nginx with it, with that lock, the service's own socket and
 * the listeners (-1: none). Returns its process, or -1 with *err set. */
pid_t hr_fleet_edge_start(const struct hr_fleet_edge *e, int lock, int requests,
    const int listeners[HR_FLEET_LISTENERS], struct hr_err *err);
/* Makes nginx accept no new connection, finish its requests, and exit. */
void hr_fleet_edge_end(const struct hr_fleet_edge *e, pid_t nginx);
/* Writes the configuration if it changed (returns 1), and makes a running nginx (> 0) reload it. */
int hr_fleet_edge_reload(const struct hr_fleet_edge *e, pid_t nginx, struct hr_err *err);

#endif
