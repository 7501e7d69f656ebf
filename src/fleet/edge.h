/* hr_fleet_edge: nginx before the service: its configuration and its process. */
#ifndef HR_FLEET_EDGE_H
#define HR_FLEET_EDGE_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct hr_fleet_edge {
	const char *data_dir; /* of the templates */
	const char *run_dir;
	const char *listen; /* "127.0.0.1:8000" */
	const char *domain; /* NULL: none */
	const char *user;   /* of nginx's workers, where we are root */
	unsigned patience_s;
};

/* part: "http", "server" (what goes into those of an nginx that is there), "routes" (into a server
 * { } of its for *.DOMAIN), "wildcard" (such a server { }, without TLS) or "all". */
int hr_fleet_edge_compose(
    struct hr_buf *out, const char *part, const struct hr_fleet_edge *e, struct hr_err *err);

/* Writes the configuration and starts nginx with it: its process, or -1. */
pid_t hr_fleet_edge_start(const struct hr_fleet_edge *e, struct hr_err *err);

#endif
