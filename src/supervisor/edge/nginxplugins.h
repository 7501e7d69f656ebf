/* hr_nginx_plugins: the locations of the plugins' paths, for server { }. */
#ifndef HR_SUPERVISOR_EDGE_NGINXPLUGINS_H
#define HR_SUPERVISOR_EDGE_NGINXPLUGINS_H

#include "base/buf.h"

struct hr_plugins;

/* limits: the counts of the server, which a location with one of its own has to repeat. */
void hr_nginx_plugins(
    struct hr_buf *b, const struct hr_plugins *ps, const char *run_dir, const char *limits);

#endif
