/* hr_store: keeps the fleet's state: keys, sandboxes, events, notes; a table of functions,
 * implemented by one SQLite file (sqlite.h) and by objects in a Kubernetes API server. Every store
 * guarantees: each call takes effect completely or not at all, also across a crash. Only `move`
 * changes a sandbox's state, by compare-and-swap: of two moves from one state, one succeeds.
 * Callers read again and decide again, so two processes may serve a store that allows it (`claim`,
 * `watch`). The caller holds one lock at each call, which a call that asks a server, and can take
 * seconds, releases meanwhile (`share`). Only known(), and active() of a store that supports
 * known(), need no lock. No call waits for a sandbox. */
#ifndef HR_FLEET_STORE_STORE_H
#define HR_FLEET_STORE_STORE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* ---- data ---- */

enum { HR_SCOPE_READ = 1, HR_SCOPE_USE = 2, HR_SCOPE_ADMIN = 4 };

struct hr_fleet_limits {
	int64_t sandboxes; /* sandboxes that run at the same time; 0: no limit */
	int64_t factors;   /* sum of their resource factors; 0: no limit */
};

struct hr_fleet_key {
	int64_t id; /* number above 0 */
	char name[64];
	int scopes;
	struct hr_fleet_limits limits;
	int64_t expires; /* seconds since 1970; 0: never */
	bool revoked;
};

/* The states are stored by number: add new ones at the end. */
enum hr_fleet_state {
	HR_FLEET_STARTING,
	HR_FLEET_RUNNING,
	HR_FLEET_PAUSING,
	HR_FLEET_PAUSED,
	HR_FLEET_RESUMING,
	HR_FLEET_STOPPING, /* the session is free for a new sandbox from here on */
	HR_FLEET_STOPPED,
	HR_FLEET_DIED,
	HR_FLEET_WARMING, /* a pool's sandbox, without key or session, is being created */
	HR_FLEET_WARM,    /* a pool's sandbox is ready */
	HR_FLEET_STATES,
};
const char *hr_fleet_state_name(enum hr_fleet_state s);
/* Returns true if the state excludes another sandbox with its session and key. */
static inline bool
hr_fleet_has_session(enum hr_fleet_state s)
{
	return s < HR_FLEET_STOPPING;
}
/* Returns true if the sandbox exists, or may exist. */
static inline bool
hr_fleet_holds_room(enum hr_fleet_state s)
{
	return s != HR_FLEET_STOPPED && s != HR_FLEET_DIED;
}

#define HR_FLEET_ID 33
#define HR_FLEET_SESSION 201
#define HR_FLEET_SHAPE 65
#define HR_FLEET_SESSION_KEY 65

/* One incarnation of a session: a restart has another id. */
struct hr_fleet_row {
	char id[HR_FLEET_ID]; /* 32 hexadecimal digits */
	int64_t key;          /* 0: the sandbox belongs to the pool */
	char session[HR_FLEET_SESSION];
	enum hr_fleet_state state;
	char reason[300]; /* why the sandbox died */
	char *request;    /* JSON of the start's body; freed by hr_fleet_row_done() */
	/* digest of the settings that are fixed at creation: two rows of one shape differ only in
	 * settings that can change while it runs */
	char shape[HR_FLEET_SHAPE];
	int64_t factor;
	char at[128];         /* "127.0.0.1:31000" or "unix:/...", "": no address yet */
	char server_key[129]; /* key of the server; never given to clients */
	char session_key[HR_FLEET_SESSION_KEY]; /* key that clients get instead */
	int vscode_port, app_ports[2];
	int64_t created, active; /* seconds since 1970; active: also set by each move */
	int64_t resumed;         /* number of moves to HR_FLEET_RESUMING */
	/* Wall time in ms at which a running sandbox ends (0: never), and the ms from each start
	 * or resume to that time (0: no end). Only hr_fleet_lease() sets them. */
	int64_t ends_ms, life_ms;
	bool end_pauses; /* the end pauses the sandbox, and does not stop it */
};
void hr_fleet_row_done(struct hr_fleet_row *r);
/* Copies the address, server_key and ports of `at`. */
void hr_fleet_row_place(struct hr_fleet_row *r, const struct hr_fleet_row *at);

enum hr_fleet_result {
	HR_FLEET_OK,
	HR_FLEET_NOT_FOUND,
	HR_FLEET_CONFLICT, /* the sandbox is in the wrong state: see the row */
	HR_FLEET_QUOTA,    /* the key's quota is used up */
	HR_FLEET_NO_ROOM,  /* the machine is full */
	HR_FLEET_DRAINED,  /* nothing new is started */
	HR_FLEET_REVOKED,  /* the key is not valid any more */
	HR_FLEET_LATE,     /* the call took longer than the longest wait */
	HR_FLEET_LEAVING,  /* this process is leaving: ask the next one */
	HR_FLEET_UNABLE,   /* the engine can do that with no sandbox */
	HR_FLEET_INVALID,  /* the request is wrong; *err is set */
	HR_FLEET_DECLINED, /* the engine does not do that now; *err is set */
	HR_FLEET_REFUSED,  /* the key may not have that; *err is set */
	HR_FLEET_BROKEN,   /* *err is set */
};

/* The callbacks; pointers are valid during the call only. */
typedef void hr_key_fn(void *arg, const struct hr_fleet_key *k);
typedef void hr_row_fn(void *arg, const struct hr_fleet_row *r);
typedef void hr_fleet_event_fn(
    void *arg, int64_t seq, int64_t at, const char *id, const char *what, const char *detail);

#define HR_MOVE_PLACED 1u /* flag: also stores at, server_key and ports of *row */
/* flag: moves only if the sandbox was not used since *row was read */
#define HR_MOVE_UNUSED 2u
#define HR_MOVE_NEW_KEY 4u /* flag: also gives the sandbox a new session key */

/* Decides, with the caller's lock held, whether a call may still take effect: returns HR_FLEET_OK,
 * or the result that the call then returns. */
typedef enum hr_fleet_result hr_may_fn(void *arg, struct hr_err *err);

#define HR_FLEET_EVENTS_NOW (-2)

/* ---- the table ---- */

struct hr_store;

struct hr_store_ops {
	void (*close)(struct hr_store *s);

	/* Adds a key; `text` is its secret, shown once, of which only the SHA-256 is stored. Fills
	 * k->id. */
	int (*key_make)(
	    struct hr_store *s, struct hr_fleet_key *k, char text[64], struct hr_err *err);
	/* Returns 1 with *ret set; 0 if the key does not exist or is not valid any more; or -1. */
	int (*key_find)(
	    struct hr_store *s, const char *text, struct hr_fleet_key *ret, struct hr_err *err);
	int (*key_revoke)(struct hr_store *s, int64_t id, bool *ret_found, struct hr_err *err);
	int (*keys)(struct hr_store *s, hr_key_fn *fn, void *arg, struct hr_err *err);

	/* Adds *row (in HR_FLEET_STARTING, or HR_FLEET_WARMING for the pool) if the quotas of its
	 * key and of all allow it, which are checked in the same transaction. If a warm sandbox has
	 * its shape, that becomes the row: its id, at, server_key and ports are filled in, and its
	 * factor counts once. Returns HR_FLEET_CONFLICT if a sandbox of this key has the session by
	 * now; after QUOTA, NO_ROOM and BROKEN (*err) nothing was added. Asks `may` when no other
	 * call of this process can take effect before this one any more. */
	enum hr_fleet_result (*reserve)(struct hr_store *s, struct hr_fleet_row *row,
	    const struct hr_fleet_limits *of_key, const struct hr_fleet_limits *of_all,
	    hr_may_fn *may, void *arg, struct hr_err *err);
	/* Returns 1 with *ret set; 0 if there is none; or -1. */
	int (*find)(
	    struct hr_store *s, const char *id, struct hr_fleet_row *ret, struct hr_err *err);
	/* Finds a row in this process's memory, from any thread, without waiting. Returns 1 with
	 * *ret set; 0 if it is unknown: call find(); or -1. NULL: not supported. */
	int (*known)(
	    struct hr_store *s, const char *id, struct hr_fleet_row *ret, struct hr_err *err);
	/* Finds the sandbox that has the session; with `last` its newest one, whatever its state.
	 */
	int (*find_session)(struct hr_store *s, int64_t key, const char *session, bool last,
	    struct hr_fleet_row *ret, struct hr_err *err);
	/* Calls fn for the sandboxes of a key, or all with key 0, oldest first; with `live` only
	 * those that exist or may exist. fn must not call the store. */
	int (*each)(struct hr_store *s, int64_t key, bool live, hr_row_fn *fn, void *arg,
	    struct hr_err *err);
	/* Works as each(), but for at most `most` rows, after the one with the id `after`; "": from
	 * the first. Key 0 requires `live`. NULL: no pages. */
	int (*page)(struct hr_store *s, int64_t key, bool live, const char *after, unsigned most,
	    hr_row_fn *fn, void *arg, struct hr_err *err);
	/* Moves a row from `from` to `to`, if that is still its state and it still has the key, the
	 * session key and the number of resumes of *row: *ret_moved. Adds an event and logs a line.
	 * how: HR_MOVE_*. */
	int (*move)(struct hr_store *s, const struct hr_fleet_row *row, enum hr_fleet_state from,
	    enum hr_fleet_state to, const char *reason, unsigned how, bool *ret_moved,
	    struct hr_err *err);
	/* Replaces the request of the row, whatever its state. The shape stays that of its
	 * creation. *ret_found is false if there is no such row of its key. NULL: not supported. */
	int (*set_request)(struct hr_store *s, const struct hr_fleet_row *row, const char *request,
	    bool *ret_found, struct hr_err *err);
	/* Records a use at `when`, unless a later one is known. If known() is supported, it may be
	 * called from any thread, without waiting, and the use is stored later. */
	int (*active)(struct hr_store *s, const char *id, int64_t when, struct hr_err *err);
	/* Returns 1 with the least recently active sandbox in that state, or 0 if there is none. A
	 * running one with an end is left out: it is not idle before that. */
	int (*least_active)(struct hr_store *s, enum hr_fleet_state state, char ret_id[HR_FLEET_ID],
	    int64_t *ret_active, struct hr_err *err);

	/* Deletes some of the sandboxes that ended before that time, the oldest first. NULL: the
	 * store does that itself. */
	int (*forget)(struct hr_store *s, int64_t before, struct hr_err *err);

	/* Counts a shape's sandboxes in the pool: being created (ret[0]) and warm (ret[1]), and
	 * returns the oldest warm one ("": none). */
	int (*pooled)(struct hr_store *s, const char *shape, int64_t ret[2],
	    char ret_warm[HR_FLEET_ID], struct hr_err *err);

	/* Adds an event. Some thousands are kept; seq grows. `detail` has up to some kilobytes. */
	int (*event)(struct hr_store *s, const char *id, const char *what, const char *detail,
	    struct hr_err *err);
	/* Calls fn for the events after `after`, oldest first; after < 0: the last `most`. id NULL:
	 * all sandboxes; key not 0: only this key's. In a shared store, an event appears shortly
	 * after it was written; HR_FLEET_EVENTS_NOW: the last `most`, including those just written
	 * by this process, before which others may still be inserted. */
	int (*events)(struct hr_store *s, int64_t key, const char *id, int64_t after, unsigned most,
	    hr_fleet_event_fn *fn, void *arg, struct hr_err *err);

	/* Returns the range: events up to *ret_lost may be missing; *ret_last is the newest. */
	int (*event_ends)(
	    struct hr_store *s, int64_t *ret_lost, int64_t *ret_last, struct hr_err *err);

	/* Reads a short string of the operator's, such as "drained". The caller frees it; NULL
	 * without an error means that it was never set. */
	int (*note_get)(struct hr_store *s, const char *name, char **ret_value, struct hr_err *err);
	int (*note_set)(
	    struct hr_store *s, const char *name, const char *value, struct hr_err *err);

	/* Sets ends_ms, life_ms and end_pauses of *row, if the sandbox is still in row->state.
	 * *ret_set: whether it was. NULL: no sandbox of this store has an end. */
	int (*lease)(
	    struct hr_store *s, const struct hr_fleet_row *row, bool *ret_set, struct hr_err *err);
	/* Returns 1 with the running sandbox that ends first, or 0 if none has an end. */
	int (*first_end)(
	    struct hr_store *s, char ret_id[HR_FLEET_ID], int64_t *ret_ends_ms, struct hr_err *err);

	/* ---- only for stores that several processes may serve; otherwise NULL ---- */

	/* Shares the lock that the caller will hold at each call. A call that asks a server
	 * releases it meanwhile; callers get it back in the order of their requests to the server.
	 */
	void (*share)(struct hr_store *s, pthread_mutex_t *lock);
	/* Decides whether this process works on a row in row->state; called before the engine does.
	 * A process that claimed it and died is replaced after some seconds; if *ret_mine is false,
	 * the caller asks again later, while the row is still in that state. */
	int (*claim)(
	    struct hr_store *s, const struct hr_fleet_row *row, bool *ret_mine, struct hr_err *err);
	/* Makes a thread of the store call fn, without any lock, for each row that another process
	 * changes. */
	int (*watch)(struct hr_store *s, void (*fn)(void *arg, const char *id), void *arg,
	    struct hr_err *err);
};

/* A store; every implementation has this as its first member. */
struct hr_store {
	const struct hr_store_ops *ops;
};

void hr_store_close(struct hr_store *s); /* Closes the store; s may be NULL. */

/* Generates a key, "hrk_" and 48 random digits; the next function returns the SHA-256 of one. */
#define HR_FLEET_KEY_SUM 32
int hr_fleet_key_text(char text[64], struct hr_err *err);
void hr_fleet_key_sum(const char *text, unsigned char sum[HR_FLEET_KEY_SUM]);
/* Returns true if the key is neither revoked nor expired. */
bool hr_fleet_key_valid(const struct hr_fleet_key *k);
/* Returns true if the key found by its sum is the right one, and valid now. Compares in constant
 * time. */
bool hr_fleet_key_good(const struct hr_fleet_key *k, const unsigned char kept[HR_FLEET_KEY_SUM],
    const unsigned char sum[HR_FLEET_KEY_SUM]);
/* Generates a session key. */
int hr_fleet_session_key(char ret[HR_FLEET_SESSION_KEY], struct hr_err *err);
/* Logs a move; for implementations. */
void hr_fleet_log_move(const char *id, enum hr_fleet_state to, const char *reason);

#endif
