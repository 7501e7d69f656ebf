/* hr_nginx_plugins: the locations of the plugins' paths, for server { }. */
#ifndef HR_SUPERVISOR_EDGE_NGINXPLUGINS_H
#define HR_SUPERVISOR_EDGE_NGINXPLUGINS_H

#include <stdbool.h>

#include "base/buf.h"

struct hr_plugins;

/* limits: the counts of the server, which a location with one of its own has to repeat. page: this
 * server serves the page of the sandbox, with which no plugin's page shares its origin. */
void hr_nginx_plugins(struct hr_buf *b, const struct hr_plugins *ps, const char *run_dir,
    const char *limits, bool page);

#endif
