/* hr_nginxconf: the configuration of nginx, made of the templates in the data directory and the
 * settings, and checked by nginx. */
#ifndef HR_SUPERVISOR_EDGE_NGINXCONF_H
#define HR_SUPERVISOR_EDGE_NGINXCONF_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

struct hr_keys;
struct hr_nginx;
struct hr_server;
struct hr_settings;

/* The parts of the configuration: what goes into http { } ("http"), into server { } ("server"),
 * both with a server { } around the second ("site"), or the whole ("all"). keys as for
 * hr_edge_compose(). Reads the
 * template (nginx.conf.in and so on) from the data directory. */
int hr_nginx_compose(struct hr_buf *out, const char *part, const struct hr_server *server,
    const struct hr_settings *c, const struct hr_keys *keys, struct hr_err *err);

/* Writes DIR/nginx/nginx.conf. With test nginx is asked first whether it is right, which blocks for
 * the run of `nginx -t`; on an error the old file stays. */
int hr_nginx_configure(const struct hr_server *server, const struct hr_settings *c,
    const struct hr_keys *keys, bool test, struct hr_err *err);

/* Those that it may have: of the settings, or more after it grew, if the kernel grants them. */
long long hr_nginx_connections(const struct hr_nginx *n, const struct hr_settings *c);

#endif
