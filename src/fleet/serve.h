/* hr_fleet_serve: serves FastCGI in threads: each takes one request of nginx at a time and answers
 * it. No other file uses libfcgi here. */
#ifndef HR_FLEET_SERVE_H
#define HR_FLEET_SERVE_H

#include <sys/types.h>

#include "fleet/api/api.h"

/* Returns a listening Unix socket that nginx may use, or -1. The socket belongs to the group (-1:
 * to the caller alone). Replaces an old one. */
int hr_fleet_listen(const char *path, gid_t group, struct hr_err *err);
struct hr_fleet_server;

/* Starts the threads, which end with the process; fd must not block. Returns NULL with *err set. */
struct hr_fleet_server *
hr_fleet_serve(const struct hr_fleet_api *api, int fd, unsigned threads, struct hr_err *err);
/* Stops taking requests: later ones wait in the socket's queue. */
void hr_fleet_serve_stop(struct hr_fleet_server *s);
/* Waits up to patience_s for the requests already taken. Returns true if all were answered. */
bool hr_fleet_serve_wait(struct hr_fleet_server *s, int patience_s);

#endif
