/* hr_kube_store from inside: store.c has its table and what is simple, rows.c the
 * sandboxes, reserve.c how one is added. */
#ifndef HR_FLEET_KUBERNETES_STORE_INT_H
#define HR_FLEET_KUBERNETES_STORE_INT_H

#include <pthread.h>

#include "fleet/kubernetes/cache.h"
#include "fleet/kubernetes/store.h"
#include "host/kubernetes/kube.h"

struct hr_kube_one;

/* The last events (events.c). */
struct hr_kube_events {
	pthread_mutex_t lock;
	struct hr_kube_one **v;
	size_t n, room, bytes;
	int64_t lost;   /* up to there some may be missing */
	int64_t seen;   /* up to there all are in v, from `lost` on */
	int64_t newest; /* of those that the watch told */
	bool listing;
	struct hr_kube kube; /* of the thread that watches */
};

/* Uses that are not written down yet (uses.c). */
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
	struct hr_kube kube;     /* of whoever calls */
	pthread_mutex_t *shared; /* the caller's lock; NULL: there is none (far.c) */
	pthread_mutex_t calls;   /* one at a time */
	int64_t away_ms;         /* when no answer came last, hr_now_ms(); 0: one came */
	char ns[64], me[40];     /* me: this process, among those that serve the store */
	int64_t making_ms;       /* a start takes less, however it ends */
	struct hr_cache *cache;
	struct hr_kube_events events;
	struct hr_kube_uses uses;
	struct hr_kube_store *writer; /* of the thread that writes uses: with a kube of its own */
	/* of the thread that watches the rows */
	struct hr_kube watch_kube;
	void (*fn)(void *arg, const char *id);
	void *arg;
};

static inline struct hr_kube_store *
hr_kube_store_of(struct hr_store *base)
{
	return (struct hr_kube_store *)base;
}

/* The API server's word as an error of ours: -1. */
int hr_kube_store_fail(const struct hr_err *why, struct hr_err *err);
/* Callers come one after the other: where no answer came within the last seconds the next ones do
 * not wait for one as well. 0, or -1 with *err; before each request. */
int hr_kube_store_away(const struct hr_kube_store *s, struct hr_err *err);
/* After each request, which returned r: returns r. */
int hr_kube_store_heard(struct hr_kube_store *s, int r);
/* 1 *ret (may be NULL) is the caller's; 0 there is none; -1. */
int hr_kube_store_get(
    struct hr_kube_store *s, const char *name, struct json_object **ret, struct hr_err *err);
/* A new one (version NULL), or that version changed: 1; 0: by now it is another, or is there
 * already, or is not there any more; -1. owner: of rows, NULL: as it was. *ret (may be NULL) is
 * what it is now, the caller's. */
int
hr_kube_store_put(struct hr_kube_store *s, const char *name, const char *kind, const char *owner,
    const char *version, const char *data, struct json_object **ret, struct hr_err *err);
/* version NULL: whatever it is. What is not there is no error. */
int hr_kube_store_delete(
    struct hr_kube_store *s, const char *name, const char *version, struct hr_err *err);

/* fn(s) in a thread of its own. */
int hr_kube_store_thread(struct hr_kube_store *s, void *(*fn)(void *arg), struct hr_err *err);
/* Such a thread's work: fn(s, ...) is told of the objects of that kind ("secrets"), from now on.
 * what: in the log, which says that it does not work and is tried again. */
void hr_kube_store_follow(struct hr_kube_store *s, struct hr_kube *k, const char *kind,
    const char *selector, const char *what, hr_kube_event_fn *fn) __attribute__((noreturn));

/* ---- far.c: the calls of the table that ask the API server, without the caller's lock ---- */

void hr_kube_far_share(struct hr_store *base, pthread_mutex_t *lock);
int hr_kube_far_key_make(
    struct hr_store *base, struct hr_fleet_key *k, char text[64], struct hr_err *err);
int hr_kube_far_key_revoke(struct hr_store *base, int64_t id, bool *ret_found, struct hr_err *err);
enum hr_fleet_result hr_kube_far_reserve(struct hr_store *base, struct hr_fleet_row *row,
    const struct hr_fleet_limits *of_key, const struct hr_fleet_limits *of_all, struct hr_err *err);
int hr_kube_far_find(
    struct hr_store *base, const char *id, struct hr_fleet_row *ret, struct hr_err *err);
int hr_kube_far_find_session(struct hr_store *base, int64_t key, const char *session, bool last,
    struct hr_fleet_row *ret, struct hr_err *err);
int
hr_kube_far_move(struct hr_store *base, const struct hr_fleet_row *row, enum hr_fleet_state from,
    enum hr_fleet_state to, const char *reason, bool placed, bool *ret_moved, struct hr_err *err);
int hr_kube_far_event(struct hr_store *base, const char *id, const char *what, const char *detail,
    struct hr_err *err);
int
hr_kube_far_note_get(struct hr_store *base, const char *name, char **ret_value, struct hr_err *err);
int hr_kube_far_note_set(
    struct hr_store *base, const char *name, const char *value, struct hr_err *err);
int hr_kube_far_claim(
    struct hr_store *base, const struct hr_fleet_row *row, bool *ret_mine, struct hr_err *err);

/* ---- store.c, as in the table ---- */

int hr_kube_store_key_make(
    struct hr_store *base, struct hr_fleet_key *k, char text[64], struct hr_err *err);
int
hr_kube_store_key_revoke(struct hr_store *base, int64_t id, bool *ret_found, struct hr_err *err);
int hr_kube_store_note_get(
    struct hr_store *base, const char *name, char **ret_value, struct hr_err *err);
int hr_kube_store_note_set(
    struct hr_store *base, const char *name, const char *value, struct hr_err *err);

/* ---- reserve.c, as in the table ---- */

enum hr_fleet_result hr_kube_store_reserve(struct hr_store *base, struct hr_fleet_row *row,
    const struct hr_fleet_limits *of_key, const struct hr_fleet_limits *of_all, struct hr_err *err);

/* ---- rows.c ---- */

/* Reads a row from the API server: 1, 0 there is none, -1. */
int hr_kube_row_look(struct hr_kube_store *s, const char *id, struct hr_fleet_row *ret,
    struct hr_cached *known, struct hr_err *err);
/* Writes a new row (version NULL), or that version of one, for this process to work on: 1, 0
 * another process was faster, -1. known (may be NULL): the version that it has now. */
int hr_kube_row_write(struct hr_kube_store *s, const struct hr_fleet_row *row, const char *version,
    struct hr_cached *known, struct hr_err *err);
/* version NULL: whatever it is. 0, -1. */
int hr_kube_row_delete(
    struct hr_kube_store *s, const char *id, const char *version, struct hr_err *err);
/* Reads the object of a session: 1, 0 there is none, -1. *ret_id is the row that has the session,
 * or had it last. version: of the object; "": there is none. */
int hr_kube_session_of(struct hr_kube_store *s, int64_t key, const char *session,
    char ret_id[HR_FLEET_ID], char version[HR_OBJECT_VERSION], struct hr_err *err);
/* Reads the row `id` if it is one of the session: 1, 0, -1. */
int hr_kube_session_row(struct hr_kube_store *s, const char *id, int64_t key, const char *session,
    struct hr_fleet_row *ret, struct hr_cached *known, struct hr_err *err);

/* As in the table. */

int hr_kube_store_find(
    struct hr_store *base, const char *id, struct hr_fleet_row *ret, struct hr_err *err);
int hr_kube_store_find_session(struct hr_store *base, int64_t key, const char *session, bool last,
    struct hr_fleet_row *ret, struct hr_err *err);
int
hr_kube_store_move(struct hr_store *base, const struct hr_fleet_row *row, enum hr_fleet_state from,
    enum hr_fleet_state to, const char *reason, bool placed, bool *ret_moved, struct hr_err *err);
int hr_kube_store_known(
    struct hr_store *base, const char *id, struct hr_fleet_row *ret, struct hr_err *err);
/* Writes down when it was used last. One that is gone is no error. */
int
hr_kube_store_write_use(struct hr_kube_store *s, const char *id, int64_t when, struct hr_err *err);
int hr_kube_store_claim(
    struct hr_store *base, const struct hr_fleet_row *row, bool *ret_mine, struct hr_err *err);

/* ---- uses.c ---- */

void hr_kube_uses_init(struct hr_kube_uses *u); /* of one that is zeroed */
void hr_kube_uses_done(struct hr_kube_uses *u);
/* From now on a thread writes down what hr_kube_store_active() was told. */
int hr_kube_store_write_uses(struct hr_kube_store *s, struct hr_err *err);
int hr_kube_store_active(struct hr_store *base, const char *id, int64_t when, struct hr_err *err);

/* ---- events.c ---- */

void hr_kube_events_init(struct hr_kube_events *e); /* of one that is zeroed */
void hr_kube_events_done(struct hr_kube_events *e);
/* From now on they are known, and s->fn is told "" when there are more. */
int hr_kube_store_watch_events(struct hr_kube_store *s, struct hr_err *err);

/* as in the table */

int hr_kube_store_event(struct hr_store *base, const char *id, const char *what, const char *detail,
    struct hr_err *err);
int hr_kube_store_events(struct hr_store *base, int64_t key, const char *id, int64_t after,
    unsigned most, hr_fleet_event_fn *fn, void *arg, struct hr_err *err);
int hr_kube_store_event_ends(
    struct hr_store *base, int64_t *ret_lost, int64_t *ret_last, struct hr_err *err);

#endif
