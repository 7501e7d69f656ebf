/* hr_nginxconf: composes nginx's configuration from the templates in the data directory and the
 * settings, and has nginx check it. */
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

/* The server that nginx serves. */
struct hr_site {
	const struct hr_context *ctx;
	const struct hr_plugins *plugins;
	struct hr_keys keys;
	struct hr_listen listen;
	int listener; /* -1: none any more */
	struct hr_viewer viewer;
	long long grown; /* connections after growth; 0: as in the settings */
};

void
hr_site_init(struct hr_site *s, const struct hr_context *ctx, const struct hr_plugins *plugins);

/* Composes a part of the configuration: the content of http { } ("http"), that of server { }
 * ("server"), both with a server { } around the second ("site"), or everything ("all"). keys are as
 * for hr_edge_compose(). Reads the templates (nginx.conf.in etc.) from the data directory. */
int hr_nginx_compose(struct hr_buf *out, const char *part, const struct hr_site *s,
    const struct hr_settings *c, const struct hr_keys *keys, struct hr_err *err);

/* Writes DIR/nginx/nginx.conf. With `test` it first asks nginx to check it, which blocks for a run
 * of `nginx -t`; on an error the old file stays. */
int hr_nginx_configure(const struct hr_site *s, const struct hr_settings *c,
    const struct hr_keys *keys, bool test, struct hr_err *err);

/* Returns the number of connections: the setting's, or more after growth, if the kernel permits. */
long long hr_nginx_connections(const struct hr_site *s, const struct hr_settings *c);

#endif
