/* hr_event: decodes the JSON of a request to an action, with the original's checks in its order and
 * its error texts (doc/actions.md, "From JSON to an action"). */
#ifndef HR_PROTO_EVENT_H
#define HR_PROTO_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "proto/evclass.h"
#include "base/span.h"
#include "proto/json.h"

/* A decoded action; borrows everything from its object. */
struct hr_event {
	const struct hr_event_class *cls;
	struct json_object *args;      /* NULL: none given */
	struct json_object *timeout;   /* any type; NULL: none or null */
	struct json_object *id;        /* NULL: none */
	struct json_object *timestamp; /* NULL: none */
	struct json_object *dispatch;  /* args.action; meaningful if has_dispatch */
	bool has_dispatch;
	/* handrail's own members: see hr_run_request; exact: by the rules of handrail's
	 * interfaces */
	bool whole_output, exact;
	double ready_s; /* always finite */
};

/* Decodes the object d, rewriting args in place as the original does (the error texts show the
 * result). Returns 0, or -1 with the text in why; why may itself have failed (memory). */
int hr_event_decode(struct json_object *d, struct hr_event *ret, struct hr_buf *why);

/* One argument of an action, given or default. */
struct hr_arg {
	enum hr_py_type type;
	struct json_object *given; /* NULL: null, or the default */
	bool truth;                /* Python's truth of the value, whatever its type */
	int64_t number;            /* HR_PY_INT within 64 bits and HR_PY_BOOL, otherwise 0 */
	struct hr_span text;       /* HR_PY_STR: may contain nulls and surrogates; otherwise "" */
};

/* Finds an argument by name, which must be one of the event's class. */
void hr_event_arg(const struct hr_event *ev, const char *name, struct hr_arg *ret);
bool hr_event_truth(const struct hr_event *ev, const char *name);

/* Binds arguments to a class as a Python call does, for both halves of the decoder. `own` is one
 * more accepted name. Returns 0, or -1 with the text of the TypeError in why. */
int hr_event_bind(
    const struct hr_event_class *c, struct json_object *args, const char *own, struct hr_buf *why);

/* Checks an object with "observation". The caller always answers with an error, since an
 * observation is no action; 0 only means that the object is valid, so that the later checks
 * apply. */
int hr_event_check_observation(struct json_object *d, struct hr_buf *why);

#endif
