/* hr_event: from the JSON of a request to an action, with the original's checks in its order and
 * its error texts (doc/actions.md, "From JSON to an action"). */
#ifndef HR_PROTO_EVENT_H
#define HR_PROTO_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "proto/evclass.h"
#include "base/span.h"
#include "proto/json.h"

/* Borrows everything from the object it was decoded from. */
struct hr_event {
	const struct hr_event_class *cls;
	struct json_object *args;      /* NULL: none given */
	struct json_object *timeout;   /* NULL: none or null; otherwise any type */
	struct json_object *id;        /* NULL: none */
	struct json_object *timestamp; /* NULL: none */
	struct json_object *dispatch;  /* args.action; meaningful if has_dispatch */
	bool has_dispatch;
	/* members of handrail's own: see hr_run_request; exact: by the rules of our interfaces */
	bool whole_output, exact;
	double ready_s; /* always finite */
};

/* d must be an object. It is changed: args are rewritten in place, as the original does (the error
 * texts show the result). 0, or -1 with the text in why; why may itself have failed (memory). */
int hr_event_decode(struct json_object *d, struct hr_event *ret, struct hr_buf *why);

/* One argument, given or default. */
struct hr_arg {
	enum hr_py_type type;
	struct json_object *given; /* NULL: null, or the default */
	bool truth;                /* Python's truth of the value, whatever its type */
	int64_t number;            /* HR_PY_INT within 64 bits and HR_PY_BOOL, otherwise 0 */
	struct hr_span text;       /* HR_PY_STR: may hold nulls and surrogates; otherwise "" */
};

/* name must be an argument of the event's class. */
void hr_event_arg(const struct hr_event *ev, const char *name, struct hr_arg *ret);
bool hr_event_truth(const struct hr_event *ev, const char *name);

/* For the two halves of the decoder: binds arguments to a class as a Python call does. `own` is one
 * more accepted name. 0, or -1 with the text of the TypeError in why. */
int hr_event_bind(
    const struct hr_event_class *c, struct json_object *args, const char *own, struct hr_buf *why);

/* The other half: d has "observation". Always an error text: an observation is no action. 0 only
 * means that what d says of itself was right, so that the checks after it come next. */
int hr_event_check_observation(struct json_object *d, struct hr_buf *why);

#endif
