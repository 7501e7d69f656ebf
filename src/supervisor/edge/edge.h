/* hr_edge: composes the nginx directives that depend on settings: TLS, access, and limits per
 * client. */
#ifndef HR_SUPERVISOR_EDGE_EDGE_H
#define HR_SUPERVISOR_EDGE_EDGE_H

#include "base/buf.h"
#include "base/err.h"

struct hr_keys;
struct hr_settings;

/* The directives; each is "" if its settings are unset. */
struct hr_edge {
	struct hr_buf listen; /* text after the address: " ssl" */
	struct hr_buf tls;    /* content of server { } */
	struct hr_buf zones;  /* content of http { } */
	struct hr_buf gate;   /* content of location { }: checks the key first */
	/* content of the location that checks: the key that nginx itself knows */
	struct hr_buf known_key;
	struct hr_buf limits;        /* content of server { } */
	struct hr_buf action_limits; /* content of the location of actions; also counts them */
	struct hr_buf live_limits;   /* the same for viewers */
};

/* Composes the directives. `keys` are those of the settings; NULL for an nginx that handrail does
 * not run: it has no keys, and asks a worker whether there are any. Fails for a value that an nginx
 * configuration cannot express. Call hr_edge_done() in both cases. */
int hr_edge_compose(
    struct hr_edge *e, const struct hr_settings *c, const struct hr_keys *keys, struct hr_err *err);
void hr_edge_done(struct hr_edge *e);

#endif
