/* Defines the parts of hr_fleet for its own files. All but the threads are called with the lock. */
#ifndef HR_FLEET_FLEET_INT_H
#define HR_FLEET_FLEET_INT_H

#include "fleet/fleet.h"

enum hr_job_kind {
	HR_JOB_START,
	HR_JOB_PAUSE,
	HR_JOB_PAUSE_FILES, /* ends processes; a restarted service does HR_JOB_PAUSE instead */
	HR_JOB_RESUME,
	HR_JOB_STOP,
	HR_JOB_WARM,
	HR_JOB_LOOK, /* checks whether the sandbox still runs, or waits paused (recover.c) */
	HR_JOB_CALL, /* a thread that is none of the jobs' calls the engine itself */
};

/* Appends a job to the list: a sandbox's jobs are done in order. */
int hr_fleet_add_job(struct hr_fleet *f, enum hr_job_kind kind, const char *id, struct hr_err *err);
/* Waits until the sandbox has no earlier job; its later ones then wait until hr_fleet_job_leave(),
 * so that the caller alone may call the engine for it. Returns HR_FLEET_OK with *ret, or
 * HR_FLEET_LATE, _LEAVING or _BROKEN. */
enum hr_fleet_result hr_fleet_job_enter(
    struct hr_fleet *f, const char *id, struct hr_fleet_job **ret, struct hr_err *err);
void hr_fleet_job_leave(struct hr_fleet *f, struct hr_fleet_job *j);
/* Moves the row from one state to another, with its reason (NULL: none), and wakes all waiters.
 * *ret_moved is false if the row was in another state by then. `how` is as in store/store.h. */
int hr_fleet_move(struct hr_fleet *f, const struct hr_fleet_row *row, enum hr_fleet_state from,
    enum hr_fleet_state to, const char *reason, unsigned how, bool *ret_moved, struct hr_err *err);
/* Moves from row->state and adds the job that follows. how and *ret_moved are as in
 * hr_fleet_move(). */
int hr_fleet_begin(struct hr_fleet *f, const struct hr_fleet_row *row, enum hr_fleet_state to,
    enum hr_job_kind job, const char *reason, unsigned how, bool *ret_moved, struct hr_err *err);
/* Returns true if the sandbox has died and the engine still has the files of its workspace. */
bool hr_fleet_keeps_files(const struct hr_fleet *f, const struct hr_fleet_row *row);
/* Fills *row with a new id for store->ops->reserve(); key 0: for the pool. */
int hr_fleet_compose(int64_t key, const char *session, const char *request, int64_t factor,
    const char *shape, struct hr_fleet_row *row, struct hr_err *err);
/* Adds the composed row, if quotas and its key allow it, with the job of its start. */
enum hr_fleet_result hr_fleet_reserve(
    struct hr_fleet *f, const struct hr_fleet_key *k, struct hr_fleet_row *row, struct hr_err *err);
/* Returns 1 if the row is no branch, or all branches of its fork exist; 0; or -1 (copies.c). */
int hr_fleet_is_whole(struct hr_fleet *f, const struct hr_fleet_row *row, struct hr_err *err);
struct hr_fleet_starter {
	struct hr_fleet *f;
	int64_t key; /* 0: the sandbox is for the pool */
};
/* Refuses a start after a drain or the revocation of its key; an hr_may_fn for struct
 * hr_fleet_starter. */
enum hr_fleet_result hr_fleet_may_start(void *starter, struct hr_err *err);
/* Adds the job that a row's state requires. Returns 1, or 0 if it requires none. */
int hr_fleet_go_on(struct hr_fleet *f, const struct hr_fleet_row *row, struct hr_err *err);
/* Does the same as hr_fleet_get() with the lock, which the caller holds. */
enum hr_fleet_result hr_fleet_find(
    struct hr_fleet *f, int64_t key, const char *id, struct hr_fleet_row *row, struct hr_err *err);
/* Reads the row again from the store. Returns 1, 0 if it does not exist, or -1. */
int hr_fleet_look_again(struct hr_fleet *f, struct hr_fleet_row *row, struct hr_err *err);

/* Asks the engine for the state of a sandbox, and moves the row if the sandbox has ended. Releases
 * the lock for the engine. Returns false if the engine fails; that is logged. */
bool hr_fleet_find_out(struct hr_fleet *f, struct hr_fleet_row *row);

/* Reads the pools and the drain flag from the store. */
int hr_fleet_load(struct hr_fleet *f, struct hr_err *err);
/* Makes and ends sandboxes of the pools. *ret_due_s is when to call again, by the monotonic clock;
 * 0: when something changes. */
void hr_fleet_pool_turn(struct hr_fleet *f, int64_t *ret_due_s);
/* Returns true if a pool has the shape `shape`. */
bool hr_fleet_pool_wants(const struct hr_fleet *f, const char *shape);
/* Records the result of making a pool's sandbox; why NULL: the sandbox is warm now. */
void hr_fleet_pool_made(struct hr_fleet *f, const char *shape, const char *why);
/* Records that a start of a sandbox of `shape` found no warm one. */
void hr_fleet_pool_missed(struct hr_fleet *f, const char *shape);
/* Stops a warm sandbox, because a start found no room. */
void hr_fleet_pool_yield(struct hr_fleet *f);

/* Raises the alert with its detail (the first one stays), or clears it if detail is NULL. */
void
hr_fleet_alert(struct hr_fleet *f, enum hr_fleet_alert what, const char *of, const char *detail);
/* Records the result of an engine call; why NULL: it succeeded. */
void hr_fleet_alert_engine(struct hr_fleet *f, const char *why);
/* Clears the alerts about the quota of `key` and about room. */
void hr_fleet_alert_room(struct hr_fleet *f, int64_t key);
/* Records the result of a start. */
void hr_fleet_alert_start(struct hr_fleet *f, const struct hr_fleet_key *k,
    const struct hr_fleet_row *row, enum hr_fleet_result r, const struct hr_err *err);
/* Records the last minute if it is over; called before any of the recorded figures changes. */
void hr_fleet_history_keep(struct hr_fleet *f);

/* ---- fair shares of the keys (turns.c) ---- */

/* A place of a waiting request; it lies on its thread's stack. */
struct hr_fleet_place {
	struct hr_fleet_place *next;
	int64_t key;
};

/* Takes one of the waiting places (hr_fleet_settings). A key has at most half of the places that
 * the others leave, so that there is always one for the next key. Returns false if there is none.
 * Called with the lock. */
bool hr_fleet_place_take(struct hr_fleet *f, struct hr_fleet_place *p, int64_t key);
void hr_fleet_place_give(struct hr_fleet *f, struct hr_fleet_place *p);

/* the turns of requests without a key: any client may send those, so that few of them wait */
#define HR_FLEET_NO_KEY 0
/* Waits until no other request of this key produces a long answer: those of one key take turns.
 * Returns false if too many of this key wait. Called without the lock. */
bool hr_fleet_turn_take(struct hr_fleet *f, struct hr_fleet_place *p, int64_t key);
void hr_fleet_turn_give(struct hr_fleet *f, struct hr_fleet_place *p);

/* Serves as the entry point of a thread (pthread_create()). */
void *hr_fleet_job_thread(void *fleet);
void *hr_fleet_clock_thread(void *fleet); /* Pauses and stops idle sandboxes. */
void *hr_fleet_watch_thread(void *fleet); /* Receives the engine's reports. */

/* Adds a duration to the histograms; called with or without the lock. */
void hr_fleet_took(struct hr_fleet *f, enum hr_fleet_phase phase, int64_t since_ms);

#endif
