/* hr_store: what the fleet knows: keys, sandboxes, events, notes; a table of functions, so that it
 * is one file of SQLite here (sqlite.h) and the objects of an API server elsewhere.
 *
 * Whoever keeps them, this holds:
 *  - Every call is whole or not at all, also after a crash.
 *  - A sandbox changes its state by `move` alone, which compares and swaps: of two that
 *    move from one state, one is told that it did. Callers decide again from what they read then,
 *    so two processes may serve one store that allows it (`claim`, `watch`).
 *  - Calls are made by one thread at a time. They may write to a disk or ask a server, which takes
 *    seconds where that is slow (`share`); they never wait for a sandbox. */
#ifndef HR_FLEET_STORE_STORE_H
#define HR_FLEET_STORE_STORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* ---- what is kept ---- */

enum { HR_SCOPE_READ = 1, HR_SCOPE_USE = 2, HR_SCOPE_ADMIN = 4 };

struct hr_fleet_limits {
	int64_t sandboxes; /* at most so many at once; 0: no bound */
	int64_t factors;   /* at most this sum of their resource factors; 0: no bound */
};

struct hr_fleet_key {
	int64_t id; /* above 0 */
	char name[64];
	int scopes;
	struct hr_fleet_limits limits;
	int64_t expires; /* seconds since 1970; 0: never */
	bool revoked;
};

/* Their numbers are kept: new ones come behind the others. */
enum hr_fleet_state {
	HR_FLEET_STARTING,
	HR_FLEET_RUNNING,
	HR_FLEET_PAUSING,
	HR_FLEET_PAUSED,
	HR_FLEET_RESUMING,
	HR_FLEET_STOPPING, /* its session is free for another one from here on */
	HR_FLEET_STOPPED,
	HR_FLEET_DIED,
	HR_FLEET_WARMING, /* one of the pool, which has neither a key nor a session: is being made
			   */
	HR_FLEET_WARM,    /* and waits */
	HR_FLEET_STATES,
};
const char *hr_fleet_state_name(enum hr_fleet_state s);
/* Of these no other one with its session and key is begun. */
static inline bool
hr_fleet_has_session(enum hr_fleet_state s)
{
	return s < HR_FLEET_STOPPING;
}
/* It is there, or may be. */
static inline bool
hr_fleet_holds_room(enum hr_fleet_state s)
{
	return s != HR_FLEET_STOPPED && s != HR_FLEET_DIED;
}

#define HR_FLEET_ID 33
#define HR_FLEET_SESSION 201
#define HR_FLEET_SHAPE 65

/* One incarnation of a session: what is started again is another one, with another id. */
struct hr_fleet_row {
	char id[HR_FLEET_ID]; /* 32 hexadecimal digits */
	int64_t key;          /* 0: of the pool */
	char session[HR_FLEET_SESSION];
	enum hr_fleet_state state;
	char reason[300]; /* of one that died */
	char *request;    /* JSON: what it is made from; hr_fleet_row_done() */
	/* a digest of what of the request is settled when it is made: two of one shape differ by
	 * what can be set in one that runs */
	char shape[HR_FLEET_SHAPE];
	int64_t factor;
	char at[64];          /* "127.0.0.1:31000"; "": not placed yet */
	char server_key[129]; /* of the server in it, which clients are not told */
	char session_key[65]; /* what clients are told in its place */
	int vscode_port, app_ports[2];
	int64_t created, active; /* seconds since 1970; active: of the last move as well */
	int64_t resumed;         /* how often it was moved to HR_FLEET_RESUMING */
};
void hr_fleet_row_done(struct hr_fleet_row *r);
/* Where another one is becomes where this one is. */
void hr_fleet_row_place(struct hr_fleet_row *r, const struct hr_fleet_row *at);

enum hr_fleet_result {
	HR_FLEET_OK,
	HR_FLEET_NOT_FOUND,
	HR_FLEET_CONFLICT, /* not in this state: see the row */
	HR_FLEET_QUOTA,    /* the key has what it may have */
	HR_FLEET_NO_ROOM,  /* the machine is full, or drained */
	HR_FLEET_LATE,     /* it takes longer than anybody waits */
	HR_FLEET_LEAVING,  /* who comes behind us is to be asked */
	HR_FLEET_UNABLE,   /* the engine cannot do that with any sandbox */
	HR_FLEET_BROKEN,   /* *err */
};

/* What is borrowed is so for the call alone. */
typedef void hr_key_fn(void *arg, const struct hr_fleet_key *k);
typedef void hr_row_fn(void *arg, const struct hr_fleet_row *r);
typedef void hr_fleet_event_fn(
    void *arg, int64_t seq, int64_t at, const char *id, const char *what, const char *detail);

#define HR_FLEET_EVENTS_NOW (-2)

/* ---- the table ---- */

struct hr_store;

struct hr_store_ops {
	void (*close)(struct hr_store *s);

	/* text: a fresh key, shown once; kept is its SHA-256. Fills k->id. */
	int (*key_make)(
	    struct hr_store *s, struct hr_fleet_key *k, char text[64], struct hr_err *err);
	/* 1: *ret; 0: there is no such key, or it is no longer good; -1. */
	int (*key_find)(
	    struct hr_store *s, const char *text, struct hr_fleet_key *ret, struct hr_err *err);
	int (*key_revoke)(struct hr_store *s, int64_t id, bool *ret_found, struct hr_err *err);
	int (*keys)(struct hr_store *s, hr_key_fn *fn, void *arg, struct hr_err *err);

	/* Adds *row (in HR_FLEET_STARTING, or HR_FLEET_WARMING for the pool) if the quotas of its
	 * key and of all allow it, which are counted in the same step. A warm one of its shape is
	 * taken where there is one: it becomes the row, with its own id, at, server_key and ports,
	 * which are filled in; its factor counts once. HR_FLEET_CONFLICT: by now one of this key
	 * has the session. QUOTA, NO_ROOM, BROKEN (*err): nothing was added. */
	enum hr_fleet_result (*reserve)(struct hr_store *s, struct hr_fleet_row *row,
	    const struct hr_fleet_limits *of_key, const struct hr_fleet_limits *of_all,
	    struct hr_err *err);
	/* 1: *ret; 0: none; -1. */
	int (*find)(
	    struct hr_store *s, const char *id, struct hr_fleet_row *ret, struct hr_err *err);
	/* As this process knows it, of any thread, without waiting for anybody: 1 *ret; 0: not
	 * known, ask find(); -1. NULL: the store has no such thing. */
	int (*known)(
	    struct hr_store *s, const char *id, struct hr_fleet_row *ret, struct hr_err *err);
	/* The one that has the session; with `last` the newest one of it, whatever became of it. */
	int (*find_session)(struct hr_store *s, int64_t key, const char *session, bool last,
	    struct hr_fleet_row *ret, struct hr_err *err);
	/* Of a key, or all with key 0, oldest first; live: those that hold room. fn calls nothing
	 * of the store. */
	int (*each)(struct hr_store *s, int64_t key, bool live, hr_row_fn *fn, void *arg,
	    struct hr_err *err);
	/* NULL: there are no pages. As each, but only up to `most` rows, those behind the one whose
	 * id is `after`; "": from the first one on. */
	int (*page)(struct hr_store *s, int64_t key, bool live, const char *after, unsigned most,
	    hr_row_fn *fn, void *arg, struct hr_err *err);
	/* From `from` to `to`, if it is in that; *ret_moved tells. placed: with its at, server_key
	 * and ports, which are now what *row says. Writes an event and a line of the log. */
	int (*move)(struct hr_store *s, const struct hr_fleet_row *row, enum hr_fleet_state from,
	    enum hr_fleet_state to, const char *reason, bool placed, bool *ret_moved,
	    struct hr_err *err);
	/* It was used then, if it was not later. Where there is known(): of any thread, and
	 * without waiting; it is written down afterwards. */
	int (*active)(struct hr_store *s, const char *id, int64_t when, struct hr_err *err);
	/* The one in that state that was active first: 1 and both results; 0: there is none. */
	int (*least_active)(struct hr_store *s, enum hr_fleet_state state, char ret_id[HR_FLEET_ID],
	    int64_t *ret_active, struct hr_err *err);

	/* Forgets some of those that ended before that, the oldest first. NULL: it does so by
	 * itself. */
	int (*forget)(struct hr_store *s, int64_t before, struct hr_err *err);

	/* Of the pool's of a shape: how many are being made (ret[0]) and wait (ret[1]), and the
	 * oldest that waits ("": none). */
	int (*pooled)(struct hr_store *s, const char *shape, int64_t ret[2],
	    char ret_warm[HR_FLEET_ID], struct hr_err *err);

	/* Some thousands are kept; seq grows. detail: up to some kilobytes. */
	int (*event)(struct hr_store *s, const char *id, const char *what, const char *detail,
	    struct hr_err *err);
	/* Those after `after`, oldest first; after < 0: the last `most`. id NULL: of all; key not
	 * 0: of sandboxes of this key. Of a store that several processes serve an event is there a
	 * moment after it was written; HR_FLEET_EVENTS_NOW: the last `most`, with what was written
	 * here just now, of which others may still come before some. */
	int (*events)(struct hr_store *s, int64_t key, const char *id, int64_t after, unsigned most,
	    hr_fleet_event_fn *fn, void *arg, struct hr_err *err);

	/* Events up to *ret_lost may be missing; *ret_last: the last one there is. */
	int (*event_ends)(
	    struct hr_store *s, int64_t *ret_lost, int64_t *ret_last, struct hr_err *err);

	/* Small texts of the operator's, such as "drained". The caller frees; NULL without an
	 * error: never written. */
	int (*note_get)(struct hr_store *s, const char *name, char **ret_value, struct hr_err *err);
	int (*note_set)(
	    struct hr_store *s, const char *name, const char *value, struct hr_err *err);

	/* ---- of a store that several processes serve, NULL otherwise ---- */

	/* Shares the lock that the caller holds at each call from now on. A call that asks a server
	 * lets it go meanwhile; callers have it again in the order in which the server was asked.
	 */
	void (*share)(struct hr_store *s, pthread_mutex_t *lock);
	/* Asked before the engine is called for a row in row->state: does this process do it? One
	 * that was told so and is gone gives way to the next after some seconds; not mine: the
	 * caller asks again later, if the row is still in that state. */
	int (*claim)(
	    struct hr_store *s, const struct hr_fleet_row *row, bool *ret_mine, struct hr_err *err);
	/* From now on fn is told, by a thread of the store's and without any lock, of rows that
	 * others have changed. */
	int (*watch)(struct hr_store *s, void (*fn)(void *arg, const char *id), void *arg,
	    struct hr_err *err);
};

/* The first member of each store. */
struct hr_store {
	const struct hr_store_ops *ops;
};

void hr_store_close(struct hr_store *s); /* NULL: nothing */

/* For whoever keeps keys: "hrk_" and 48 random digits, and the SHA-256 of such a text. */
#define HR_FLEET_KEY_SUM 32
int hr_fleet_key_text(char text[64], struct hr_err *err);
void hr_fleet_key_sum(const char *text, unsigned char sum[HR_FLEET_KEY_SUM]);
/* Is a key found by its sum that key, and good now? In a time that tells nothing of the sums. */
bool hr_fleet_key_good(const struct hr_fleet_key *k, const unsigned char kept[HR_FLEET_KEY_SUM],
    const unsigned char sum[HR_FLEET_KEY_SUM]);
/* The log's line of a move, for implementations. */
void hr_fleet_log_move(const char *id, enum hr_fleet_state to, const char *reason);

#endif
