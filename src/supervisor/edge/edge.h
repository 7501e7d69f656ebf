/* hr_edge: the nginx directives that depend on settings: TLS, access, and limits per client. Turns
 * settings into text. */
#ifndef HR_SUPERVISOR_EDGE_EDGE_H
#define HR_SUPERVISOR_EDGE_EDGE_H

#include "base/buf.h"
#include "base/err.h"

struct hr_keys;
struct hr_settings;

/* Each is "" if its settings are unset. */
struct hr_edge {
	struct hr_buf listen;        /* after the address: " ssl" */
	struct hr_buf tls;           /* server { } */
	struct hr_buf zones;         /* http { } */
	struct hr_buf gate;          /* location { }: checks the key first */
	struct hr_buf known_key;     /* the location that checks: the key nginx knows itself */
	struct hr_buf limits;        /* server { } */
	struct hr_buf action_limits; /* location of actions; also counts them */
	struct hr_buf live_limits;   /* the same for viewers */
};

/* keys: those of the settings; NULL for an nginx that handrail does not run: it has no keys, and
 * asks a worker whether there are any. Fails for a value that an nginx configuration cannot
 * express. Call hr_edge_done() in both cases. */
int hr_edge_compose(
    struct hr_edge *e, const struct hr_settings *c, const struct hr_keys *keys, struct hr_err *err);
void hr_edge_done(struct hr_edge *e);

#endif
