/* The parts of hr_fleet_api, for its own files: a call under way, and the objects in the answers.
 */
#ifndef HR_FLEET_API_API_INT_H
#define HR_FLEET_API_API_INT_H

#include "fleet/api/api.h"

#define HR_FLEET_BUSY_S 2 /* Retry-After of what will soon be different */

struct json_object;

struct hr_fleet_call {
	const struct hr_fleet_api *api;
	const struct hr_fleet_request *q;
	struct hr_fleet_answer *a;
	struct hr_fleet_key key;
	const char *rest;         /* of the path, behind a row's that ends in "/" */
	const char *query;        /* "" for none */
	struct json_object *body; /* of a POST; NULL: it is none, or null */
};

#define HR_FLEET_QUERY_MAX 16384

/* The next value of a name in the query, decoded into b; *query goes on behind it. false: no more.
 */
bool hr_fleet_query_next(struct hr_buf *b, const char **query, const char *name);
/* The value of a name in the query, the last one of several, decoded into b; "" where it is not
 * there. */
const char *hr_fleet_query(struct hr_buf *b, const char *query, const char *name);
/* Is it that value? */
bool hr_fleet_query_says(const struct hr_fleet_call *c, const char *name, const char *value);

/* So many requests of this key wait already. */
void hr_fleet_refuse_crowd(struct hr_fleet_answer *a);

/* ---- objects (object.c) ---- */

/* What clients are told of a state. */
const char *hr_fleet_status(enum hr_fleet_state s);
/* A sandbox, without its last brace. */
void hr_fleet_put_object(struct hr_buf *b, const struct hr_fleet_api *api,
    const struct hr_fleet_request *q, const struct hr_fleet_row *row);
void hr_fleet_put_event(struct hr_buf *b, int64_t seq, int64_t at, const char *id, const char *what,
    const char *detail);

/* ---- calls (calls.c) ---- */

typedef void hr_fleet_call_fn(struct hr_fleet_call *c);
hr_fleet_call_fn hr_fleet_call_start, hr_fleet_call_stop, hr_fleet_call_pause, hr_fleet_call_resume,
    hr_fleet_call_session, hr_fleet_call_runtime, hr_fleet_call_prefix, hr_fleet_call_image,
    hr_fleet_call_build, hr_fleet_call_build_status, hr_fleet_call_list,
    hr_fleet_call_batch,  /* list.c */
    hr_fleet_call_events; /* events.c */

#endif
