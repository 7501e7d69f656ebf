/* hr_store: what the fleet knows, in one SQLite file: keys, sandboxes, events. One process has it
 * open, by a lock beside it; in that process one thread at a time uses it. Every change is a
 * transaction: after a crash it is there whole or not at all. */
#ifndef HR_FLEET_STORE_H
#define HR_FLEET_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

struct hr_store;

/* make: a new one where there is none. HR_E_BUSY: another process has it open. HR_E_UNSUPPORTED: it
 * was written by another version. */
struct hr_store *hr_store_open(const char *dir, bool make, struct hr_err *err);
void hr_store_close(struct hr_store *s); /* NULL: nothing */

/* Between them all calls are one transaction. hr_store_end() keeps it if ok, and takes it back
 * otherwise or if it cannot be kept. */
int hr_store_begin(struct hr_store *s, struct hr_err *err);
int hr_store_end(struct hr_store *s, bool ok, struct hr_err *err);

/* ---- keys ---- */

enum { HR_SCOPE_READ = 1, HR_SCOPE_USE = 2, HR_SCOPE_ADMIN = 4 };

struct hr_fleet_key {
	int64_t id;
	char name[64];
	int scopes;
	int64_t sandboxes; /* at most so many at once; 0: no bound */
	int64_t factors;   /* at most this sum of their resource factors; 0: no bound */
	int64_t expires;   /* seconds since 1970; 0: never */
	bool revoked;
};

/* text: a fresh key, shown once; kept is its SHA-256. */
int
hr_store_key_make(struct hr_store *s, struct hr_fleet_key *k, char text[64], struct hr_err *err);
/* 1: *ret; 0: there is no such key, or it is no longer good; -1: *err. */
int hr_store_key_find(
    struct hr_store *s, const char *text, struct hr_fleet_key *ret, struct hr_err *err);
int hr_store_key_revoke(struct hr_store *s, int64_t id, bool *ret_found, struct hr_err *err);
typedef void hr_key_fn(void *arg, const struct hr_fleet_key *k);
int hr_store_keys(struct hr_store *s, hr_key_fn *fn, void *arg, struct hr_err *err);

/* ---- sandboxes ---- */

enum hr_fleet_state {
	HR_FLEET_STARTING,
	HR_FLEET_RUNNING,
	HR_FLEET_PAUSING,
	HR_FLEET_PAUSED,
	HR_FLEET_RESUMING,
	HR_FLEET_STOPPING,
	HR_FLEET_STOPPED,
	HR_FLEET_DIED,
	HR_FLEET_STATES,
};
const char *hr_fleet_state_name(enum hr_fleet_state s);

#define HR_FLEET_ID 33
#define HR_FLEET_SESSION 201

/* One incarnation of a session: what is started again is another one, with another id. */
struct hr_fleet_row {
	char id[HR_FLEET_ID];
	int64_t key;
	char session[HR_FLEET_SESSION];
	enum hr_fleet_state state;
	char reason[300]; /* of one that died */
	char *request;    /* JSON: what it is made from; hr_fleet_row_done() */
	int64_t factor;
	char at[64];          /* "127.0.0.1:31000"; "": not placed yet */
	char server_key[129]; /* of the server in it, which clients are not told */
	char session_key[65]; /* what clients are told in its place */
	int vscode_port, app_ports[2];
	int64_t created, active; /* seconds since 1970 */
	int64_t resumed;         /* how often */
};
void hr_fleet_row_done(struct hr_fleet_row *r);

int hr_store_add(struct hr_store *s, const struct hr_fleet_row *r, struct hr_err *err);
/* 1: *ret; 0: none; -1. The second: the one of that session that lives. */
int hr_store_find(struct hr_store *s, const char *id, struct hr_fleet_row *ret, struct hr_err *err);
int hr_store_find_session(struct hr_store *s, int64_t key, const char *session,
    struct hr_fleet_row *ret, struct hr_err *err);
/* The newest one of it, whatever became of it. */
int hr_store_find_last(struct hr_store *s, int64_t key, const char *session,
    struct hr_fleet_row *ret, struct hr_err *err);
/* Of a key, or all with key 0; live: without those that are stopped or died. fn may not change the
 * store. */
typedef void hr_row_fn(void *arg, const struct hr_fleet_row *r);
int hr_store_each(
    struct hr_store *s, int64_t key, bool live, hr_row_fn *fn, void *arg, struct hr_err *err);
/* How many take up room, of a key or with key 0 all. */
int hr_store_count(
    struct hr_store *s, int64_t key, int64_t *ret_n, int64_t *ret_factors, struct hr_err *err);
/* The only setter of a state: only from `from`. *ret_moved: it was in that. Writes an event. */
int hr_store_move(struct hr_store *s, const char *id, enum hr_fleet_state from,
    enum hr_fleet_state to, const char *reason, bool *ret_moved, struct hr_err *err);
int hr_store_placed(struct hr_store *s, const struct hr_fleet_row *r, struct hr_err *err);
int hr_store_active(struct hr_store *s, const char *id, int64_t when, struct hr_err *err);
/* The one that will have been idle first: 1 and *ret_id, *ret_active; 0: nothing is in that state.
 */
int hr_store_least_active(struct hr_store *s, enum hr_fleet_state state, char ret_id[HR_FLEET_ID],
    int64_t *ret_active, struct hr_err *err);

/* ---- events ---- */

int hr_store_event(
    struct hr_store *s, const char *id, const char *what, const char *detail, struct hr_err *err);
typedef void hr_event_row_fn(
    void *arg, int64_t seq, int64_t at, const char *id, const char *what, const char *detail);
/* id NULL: of all. The last `most`, oldest first. */
int hr_store_events(struct hr_store *s, const char *id, unsigned most, hr_event_row_fn *fn,
    void *arg, struct hr_err *err);

#endif
