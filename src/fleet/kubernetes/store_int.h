/* Internals of hr_kube_store: store.c has its table and the simple calls, rows.c the sandboxes,
 * reserve.c the reservation of one. */
#ifndef HR_FLEET_KUBERNETES_STORE_INT_H
#define HR_FLEET_KUBERNETES_STORE_INT_H

#include <pthread.h>

#include "fleet/kubernetes/cache.h"
#include "fleet/kubernetes/store.h"
#include "host/kubernetes/kube.h"

struct hr_kube_one;

/* The latest events (events.c). */
struct hr_kube_events {
	pthread_mutex_t lock;
	struct hr_kube_one **v;
	size_t n, room, bytes;
	int64_t lost;   /* events up to this number may be missing */
	int64_t seen;   /* v is complete from `lost` to this number */
	int64_t newest; /* newest event that the watch delivered */
	bool listing;
	struct hr_kube kube; /* used by the thread of the watch */
};

/* The uses that are not yet stored (uses.c). */
struct hr_kube_uses {
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct hr_kube_use {
		char id[HR_FLEET_ID];
		int64_t when;
	} * v;
	size_t n, room;
};

struct hr_kube_store {
	struct hr_store base;
	struct hr_kube kube;     /* used by the calling thread */
	pthread_mutex_t *shared; /* lock of the caller; NULL: none (far.c) */
	pthread_mutex_t calls;   /* admits one call at a time */
	/* hr_now_ms() of the last failure to get an answer; 0: the last answer arrived */
	int64_t away_ms;
	char ns[64], me[40]; /* me: name of this process among those that serve the store */
	int64_t making_ms;   /* longer than any start takes, successful or not */
	struct hr_cache *cache;
	struct hr_kube_events events;
	struct hr_kube_uses uses;
	struct hr_kube_store *writer; /* store of the thread that stores uses: with its own kube */
	/* used by the thread that watches the rows */
	struct hr_kube watch_kube;
	void (*fn)(void *arg, const char *id);
	void *arg;
};

static inline struct hr_kube_store *
hr_kube_store_of(struct hr_store *base)
{
	return (struct hr_kube_store *)base;
}

/* Translates the API server's error into *err; returns -1. */
int hr_kube_store_fail(const struct hr_err *why, struct hr_err *err);
/* Prepares a request. Fails at once if no answer came within the last seconds, so that waiting
 * callers do not each wait for one. Returns 0, or -1 with *err set. */
int hr_kube_store_away(const struct hr_kube_store *s, struct hr_err *err);
/* Notes a request's result r, and returns r. */
int hr_kube_store_heard(struct hr_kube_store *s, int r);
/* Sends a request, with both of the above. */
int hr_kube_store_call(struct hr_kube_store *s, enum hr_kube_verb verb, const char *path,
    const char *body, struct json_object **ret, struct hr_err *err);
/* Reads an object. Returns 1 with *ret (which the caller owns; ret may be NULL), 0 if there is
 * none, or -1. */
int hr_kube_store_get(
    struct hr_kube_store *s, const char *name, struct json_object **ret, struct hr_err *err);
/* Creates an object (version NULL), or changes that version. Returns 1; 0 if the version is another
 * by now, or the object exists already, or was deleted; or -1. `owner` is for rows; NULL:
 * unchanged. *ret (which the caller owns; ret may be NULL) is the present object. */
int
hr_kube_store_put(struct hr_kube_store *s, const char *name, const char *kind, const char *owner,
    const char *version, const char *data, struct json_object **ret, struct hr_err *err);
/* Deletes an object; version NULL: any version. Succeeds if there is none. */
int hr_kube_store_delete(
    struct hr_kube_store *s, const char *name, const char *version, struct hr_err *err);

/* Runs the thread of a watch: calls fn(s, ...) for all changes of objects of that kind ("secrets").
 * `what` names the watch in the log when it fails and is retried. */
void hr_kube_store_follow(struct hr_kube_store *s, struct hr_kube *k, const char *kind,
    const char *selector, const char *what, hr_kube_event_fn *fn) __attribute__((noreturn));

/* ---- far.c: the calls that ask the API server, made without the caller's lock ---- */

void hr_kube_far_share(struct hr_store *base, pthread_mutex_t *lock);
/* Returns the store for a call: releases the caller's lock and waits until no other call runs. The
 * call's block declares the result with HR_CLEAN(hr_kube_far_end), which takes that lock again. */
struct hr_kube_store *hr_kube_far_begin(struct hr_store *base);
void hr_kube_far_end(struct hr_kube_store **in); /* Ends the call; *in may be NULL. */

/* ---- reserve.c, as in the table ---- */

enum hr_fleet_result hr_kube_store_reserve(struct hr_store *base, struct hr_fleet_row *row,
    const struct hr_fleet_limits *of_key, const struct hr_fleet_limits *of_all, hr_may_fn *may,
    void *arg, struct hr_err *err);

/* ---- rows.c ---- */

/* Reads a row from the API server. Returns 1, 0 if there is none, or -1. */
int hr_kube_row_look(struct hr_kube_store *s, const char *id, struct hr_fleet_row *ret,
    struct hr_cached *known, struct hr_err *err);
/* Writes a new row (version NULL), or that version of one, claimed for this process. Returns 1, 0
 * if another process was faster, or -1. known (may be NULL) gets its new version. */
int hr_kube_row_write(struct hr_kube_store *s, const struct hr_fleet_row *row, const char *version,
    struct hr_cached *known, struct hr_err *err);
/* Deletes a row; version NULL: any version. Returns 0, or -1. */
int hr_kube_row_delete(
    struct hr_kube_store *s, const char *id, const char *version, struct hr_err *err);
/* Reads a session's object. Returns 1, 0 if there is none, or -1. *ret_id is the row that has the
 * session, or had it last. `version` is the object's; "": there is none. */
int hr_kube_session_of(struct hr_kube_store *s, int64_t key, const char *session,
    char ret_id[HR_FLEET_ID], char version[HR_OBJECT_VERSION], struct hr_err *err);
/* Reads the row `id` if it belongs to the session. Returns 1, 0, or -1. */
int hr_kube_session_row(struct hr_kube_store *s, const char *id, int64_t key, const char *session,
    struct hr_fleet_row *ret, struct hr_cached *known, struct hr_err *err);

/* Implements the table's call. */

int hr_kube_store_find(
    struct hr_store *base, const char *id, struct hr_fleet_row *ret, struct hr_err *err);
int hr_kube_store_find_session(struct hr_store *base, int64_t key, const char *session, bool last,
    struct hr_fleet_row *ret, struct hr_err *err);
int
hr_kube_store_move(struct hr_store *base, const struct hr_fleet_row *row, enum hr_fleet_state from,
    enum hr_fleet_state to, const char *reason, unsigned how, bool *ret_moved, struct hr_err *err);
int hr_kube_store_known(
    struct hr_store *base, const char *id, struct hr_fleet_row *ret, struct hr_err *err);
/* Stores the last use. Succeeds if the row was deleted. */
int
hr_kube_store_write_use(struct hr_kube_store *s, const char *id, int64_t when, struct hr_err *err);
int hr_kube_store_claim(
    struct hr_store *base, const struct hr_fleet_row *row, bool *ret_mine, struct hr_err *err);

/* ---- uses.c ---- */

void hr_kube_uses_init(struct hr_kube_uses *u); /* Initialises u, which must be zeroed. */
void hr_kube_uses_done(struct hr_kube_uses *u);
/* Starts the thread that stores the uses recorded by hr_kube_store_active(). */
int hr_kube_store_write_uses(struct hr_kube_store *s, struct hr_err *err);
int hr_kube_store_active(struct hr_store *base, const char *id, int64_t when, struct hr_err *err);

/* ---- events.c ---- */

void hr_kube_events_init(struct hr_kube_events *e); /* Initialises e, which must be zeroed. */
void hr_kube_events_done(struct hr_kube_events *e);
/* Starts the watch of events; s->fn is called with "" when there are new ones. */
int hr_kube_store_watch_events(struct hr_kube_store *s, struct hr_err *err);

/* Writes an event within a call. */
int hr_kube_event_write(struct hr_kube_store *s, const char *id, const char *what,
    const char *detail, struct hr_err *err);

/* Implements the table's call. */

int hr_kube_store_event(struct hr_store *base, const char *id, const char *what, const char *detail,
    struct hr_err *err);
int hr_kube_store_events(struct hr_store *base, int64_t key, const char *id, int64_t after,
    unsigned most, hr_fleet_event_fn *fn, void *arg, struct hr_err *err);
int hr_kube_store_event_ends(
    struct hr_store *base, int64_t *ret_lost, int64_t *ret_last, struct hr_err *err);

#endif
