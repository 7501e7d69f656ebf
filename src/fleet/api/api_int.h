/* Defines the parts of hr_fleet_api for its own files: a call in progress, and the objects in the
 * answers. */
#ifndef HR_FLEET_API_API_INT_H
#define HR_FLEET_API_API_INT_H

#include "fleet/api/api.h"

#define HR_FLEET_KEY_GONE "the key was revoked or has expired"
#define HR_FLEET_BUSY_S 2 /* Retry-After of a state that changes soon */

struct json_object;

struct hr_fleet_call {
	const struct hr_fleet_api *api;
	const struct hr_fleet_request *q;
	struct hr_fleet_answer *a;
	struct hr_fleet_key key;
	const char *rest;         /* remainder of the path, after a row's path that ends in "/" */
	const char *query;        /* "": none */
	struct json_object *body; /* parsed body of a POST; NULL: none, or null */
};

#define HR_FLEET_QUERY_MAX 16384

/* Decodes the next value of a name in the query into b, and advances *query past it. Returns false
 * if there is none. */
bool hr_fleet_query_next(struct hr_buf *b, const char **query, const char *name);
/* Compares secrets in constant time for one length; empty ones differ. */
bool hr_fleet_same(const char *a, const char *b);
/* Returns the value of a name in the query, the last of several, decoded into b, or "" if there is
 * none. */
const char *hr_fleet_query(struct hr_buf *b, const char *query, const char *name);
/* Returns true if the name has that value. */
bool hr_fleet_query_says(const struct hr_fleet_call *c, const char *name, const char *value);
#define HR_FLEET_PAGE_MAX 1000
/* Returns the `limit` of a page, at most HR_FLEET_PAGE_MAX, or 0 after it has answered. */
long hr_fleet_query_limit(const struct hr_fleet_call *c);

struct hr_fleet_place;
/* Takes a waiting place for a call of the engine, as for a wait for a sandbox, so that threads are
 * left for other requests. Returns true if hr_fleet_call_leave() must follow. */
bool hr_fleet_call_enter(struct hr_fleet_call *c, struct hr_fleet_place *p);
void hr_fleet_call_leave(struct hr_fleet *f, struct hr_fleet_place *p);

/* Takes a waiting place for a search in the store. Returns false after it has answered that the key
 * has too many. */
bool hr_fleet_call_turn(struct hr_fleet_call *c, struct hr_fleet_place *ret);
/* Answers that too many requests of this key wait already. */
void hr_fleet_refuse_crowd(struct hr_fleet_answer *a);

/* Puts the tag of the snapshot in the place of its name in the member "from" of a start. Returns
 * true, or false after it has answered. */
bool hr_fleet_call_from(struct hr_fleet_call *c);

/* ---- objects (object.c) ---- */

/* Returns the state's name for clients. */
const char *hr_fleet_status(enum hr_fleet_state s);
/* Appends a sandbox, without the closing brace. */
void hr_fleet_put_object(struct hr_buf *b, const struct hr_fleet_api *api,
    const struct hr_fleet_request *q, const struct hr_fleet_row *row);
/* Appends the member "fork_of" of a branch, or "snapshot" of a start from one. */
void hr_fleet_put_origin(struct hr_buf *b, const struct hr_fleet_row *row);
void hr_fleet_put_event(struct hr_buf *b, int64_t seq, int64_t at, const char *id, const char *what,
    const char *detail);

/* ---- calls (calls.c) ---- */

typedef void hr_fleet_call_fn(struct hr_fleet_call *c);
hr_fleet_call_fn hr_fleet_call_start, hr_fleet_call_stop, hr_fleet_call_pause, hr_fleet_call_resume,
    hr_fleet_call_session, hr_fleet_call_runtime, hr_fleet_call_prefix, hr_fleet_call_image,
    hr_fleet_call_build, hr_fleet_call_build_status, hr_fleet_call_usage, hr_fleet_call_list,
    hr_fleet_call_batch,  /* implemented in list.c */
    hr_fleet_call_events, /* implemented in events.c */
    /* implemented in copies.c */
    hr_fleet_call_fork, hr_fleet_call_snapshot, hr_fleet_call_snapshots, hr_fleet_call_unsnapshot,
    /* implemented in network.c */
    hr_fleet_call_network, hr_fleet_call_set_network, hr_fleet_call_network_log,
    hr_fleet_call_operator; /* implemented in operator.c: the calls below /handrail/v1/ */

#endif
