/* hr_fleet_serve: FastCGI in threads: each takes a request of nginx, one at a time, and answers it.
 * The only user of libfcgi here. */
#ifndef HR_FLEET_SERVE_H
#define HR_FLEET_SERVE_H

#include <sys/types.h>

#include "fleet/api/api.h"

/* A listening Unix socket that nginx may use: the group's (-1: the caller's alone). An old one is
 * replaced. The descriptor, or -1. */
int hr_fleet_listen(const char *path, gid_t group, struct hr_err *err);
struct hr_fleet_server;

/* Threads that end with the process; fd does not block. NULL: *err says why. */
struct hr_fleet_server *
hr_fleet_serve(const struct hr_fleet_api *api, int fd, unsigned threads, struct hr_err *err);
/* Takes no request any more: those that come wait in the socket's queue. */
void hr_fleet_serve_stop(struct hr_fleet_server *s);
/* true: all that were taken are answered, within that time. */
bool hr_fleet_serve_wait(struct hr_fleet_server *s, int patience_s);

#endif
