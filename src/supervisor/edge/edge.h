/* hr_edge: the directives of nginx that only some settings call for: TLS, who gets in, and how much
 * one client may ask for. Settings in, text out. */
#ifndef HR_SUPERVISOR_EDGE_EDGE_H
#define HR_SUPERVISOR_EDGE_EDGE_H

#include "base/buf.h"
#include "base/err.h"

struct hr_keys;
struct hr_settings;

/* Each is "" where its settings are not made. */
struct hr_edge {
	struct hr_buf listen;        /* after the address: " ssl" */
	struct hr_buf tls;           /* server { } */
	struct hr_buf zones;         /* http { } */
	struct hr_buf gate;          /* location { }: asks for the key first */
	struct hr_buf known_key;     /* the location that answers: what nginx knows by itself */
	struct hr_buf limits;        /* server { } */
	struct hr_buf action_limits; /* the location of actions, that counts them besides */
	struct hr_buf live_limits;   /* the same for those who look on */
};

/* keys: those of the settings; NULL for an nginx that is not ours: it knows none, and asks a worker
 * whether there are any. Fails for a value that a configuration of nginx cannot hold.
 * hr_edge_done() in any case. */
int hr_edge_compose(
    struct hr_edge *e, const struct hr_settings *c, const struct hr_keys *keys, struct hr_err *err);
void hr_edge_done(struct hr_edge *e);

#endif
