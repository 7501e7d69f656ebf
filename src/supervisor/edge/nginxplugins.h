/* hr_nginx_plugins: composes the locations of the plugins' paths, for server { }. */
#ifndef HR_SUPERVISOR_EDGE_NGINXPLUGINS_H
#define HR_SUPERVISOR_EDGE_NGINXPLUGINS_H

#include <stdbool.h>

#include "base/buf.h"

struct hr_plugins;
struct hr_settings;

/* Appends the locations. `limits` are those of the server, which a location with its own limit must
 * repeat. `page`: this server serves the sandbox's page, whose origin no plugin's page may share.
 * `connections`: those of a worker of nginx. */
void hr_nginx_plugins(struct hr_buf *b, const struct hr_plugins *ps, const char *run_dir,
    const char *limits, const struct hr_settings *c, bool page, long long connections);

/* Appends "|PORT" for each port on which a plugin listens itself. */
void hr_nginx_plugin_ports(struct hr_buf *b, const struct hr_plugins *ps);

#endif
