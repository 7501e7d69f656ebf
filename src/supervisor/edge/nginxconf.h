/* hr_nginxconf: the configuration of nginx, made of the templates in the data directory and the
 * settings, and checked by nginx. */
#ifndef HR_SUPERVISOR_EDGE_NGINXCONF_H
#define HR_SUPERVISOR_EDGE_NGINXCONF_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "supervisor/edge/listen.h"
#include "supervisor/edge/viewer.h"
#include "supervisor/run/keys.h"

struct hr_context;
struct hr_plugins;
struct hr_settings;

/* What nginx stands in front of. */
struct hr_site {
	const struct hr_context *ctx;
	const struct hr_plugins *plugins;
	struct hr_keys keys;
	struct hr_listen listen;
	int listener; /* TCP; -1: none (any more) */
	struct hr_viewer viewer;
	long long grown; /* connections, as those of the settings were taken; 0: they were not */
};

void
hr_site_init(struct hr_site *s, const struct hr_context *ctx, const struct hr_plugins *plugins);

/* The parts of the configuration: what goes into http { } ("http"), into server { } ("server"),
 * both with a server { } around the second ("site"), or the whole ("all"). keys as for
 * hr_edge_compose(). Reads the
 * template (nginx.conf.in and so on) from the data directory. */
int hr_nginx_compose(struct hr_buf *out, const char *part, const struct hr_site *s,
    const struct hr_settings *c, const struct hr_keys *keys, struct hr_err *err);

/* Writes DIR/nginx/nginx.conf. With test nginx is asked first whether it is right, which blocks for
 * the run of `nginx -t`; on an error the old file stays. */
int hr_nginx_configure(const struct hr_site *s, const struct hr_settings *c,
    const struct hr_keys *keys, bool test, struct hr_err *err);

/* Those that it may have: of the settings, or more after it grew, if the kernel grants them. */
long long hr_nginx_connections(const struct hr_site *s, const struct hr_settings *c);

#endif
