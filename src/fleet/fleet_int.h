/* The parts of hr_fleet, for its own files. All but the threads are called with the lock. */
#ifndef HR_FLEET_FLEET_INT_H
#define HR_FLEET_FLEET_INT_H

#include "fleet/fleet.h"

enum hr_job_kind {
	HR_JOB_START,
	HR_JOB_PAUSE,
	HR_JOB_RESUME,
	HR_JOB_STOP,
	HR_JOB_WARM,
	HR_JOB_LOOK, /* does it still run, or wait paused? (recover.c) */
};

/* To the end of the list: a sandbox's jobs are done in their order. */
int hr_fleet_add_job(struct hr_fleet *f, enum hr_job_kind kind, const char *id, struct hr_err *err);
/* Moves the row from one state to another one, with its reason (NULL: none), for all to see.
 * *ret_moved false: it was in another state by then. */
int hr_fleet_move(struct hr_fleet *f, const struct hr_fleet_row *row, enum hr_fleet_state from,
    enum hr_fleet_state to, const char *reason, bool placed, bool *ret_moved, struct hr_err *err);
/* Moves from row->state and adds the job that follows. *ret_moved false: it was in another state by
 * then. */
int hr_fleet_begin(struct hr_fleet *f, const struct hr_fleet_row *row, enum hr_fleet_state to,
    enum hr_job_kind job, const char *reason, bool *ret_moved, struct hr_err *err);
/* Returns true if the sandbox has died and the engine still has the files of its workspace. */
bool hr_fleet_keeps_files(const struct hr_fleet *f, const struct hr_fleet_row *row);
/* A row of that, with a fresh id, for store->ops->reserve(): key 0: for the pool. */
int hr_fleet_compose(int64_t key, const char *session, const char *request, int64_t factor,
    const char *shape, struct hr_fleet_row *row, struct hr_err *err);
/* Adds the job that a row's state asks for: 1; 0: it asks for none. */
int hr_fleet_go_on(struct hr_fleet *f, const struct hr_fleet_row *row, struct hr_err *err);
/* Again what the store says of it: 1, 0 it is not there, -1. */
int hr_fleet_look_again(struct hr_fleet *f, struct hr_fleet_row *row, struct hr_err *err);

/* Asks the engine for the state of a sandbox, and moves the row where the sandbox has ended. The
 * lock is let go for the engine. Returns false if the engine does not say; that is logged. */
bool hr_fleet_find_out(struct hr_fleet *f, struct hr_fleet_row *row);

/* Reads what the store says of pools, and whether we are drained. */
int hr_fleet_load(struct hr_fleet *f, struct hr_err *err);
/* Makes and ends sandboxes of the pools. *ret_due_s: when to come again, by the monotonic clock; 0:
 * when something changes. */
void hr_fleet_pool_turn(struct hr_fleet *f, int64_t *ret_due_s);
/* Is there one for it? */
bool hr_fleet_pool_wants(const struct hr_fleet *f, const char *shape);
/* What came of making one of them; why NULL: it waits now. */
void hr_fleet_pool_made(struct hr_fleet *f, const char *shape, const char *why);
/* A start of that shape was not given one that waits. */
void hr_fleet_pool_missed(struct hr_fleet *f, const char *shape);
/* There is no room for what was asked for: one that waits goes. */
void hr_fleet_pool_yield(struct hr_fleet *f);

/* It is so, and why (the first that is said stays); or with NULL it is not so any more. */
void
hr_fleet_alert(struct hr_fleet *f, enum hr_fleet_alert what, const char *of, const char *detail);
/* What came of a call of the engine; why NULL: it went well. */
void hr_fleet_alert_engine(struct hr_fleet *f, const char *why);
/* There is room for another one, of this key and of all. */
void hr_fleet_alert_room(struct hr_fleet *f, int64_t key);
/* What came of a start. */
void hr_fleet_alert_start(struct hr_fleet *f, const struct hr_fleet_key *k,
    const struct hr_fleet_row *row, enum hr_fleet_result r, const struct hr_err *err);
/* Before anything that it shows changes. */
void hr_fleet_history_keep(struct hr_fleet *f);

/* ---- so that one key takes nothing from the others (turns.c) ---- */

/* On the stack of the thread that has it. */
struct hr_fleet_place {
	struct hr_fleet_place *next;
	int64_t key;
};

/* A place among those who wait at the same time (hr_fleet_settings). A key has at most half of the
 * places that the others leave, so that there is always one for the next key. Returns false if
 * there is none. With the lock. */
bool hr_fleet_place_take(struct hr_fleet *f, struct hr_fleet_place *p, int64_t key);
void hr_fleet_place_give(struct hr_fleet *f, struct hr_fleet_place *p);

/* Waits until no other request of this key makes a long answer: those of one key come one after the
 * other. Returns false if too many of this key wait. Without the lock. */
bool hr_fleet_turn_take(struct hr_fleet *f, struct hr_fleet_place *p, int64_t key);
void hr_fleet_turn_give(struct hr_fleet *f, struct hr_fleet_place *p);

/* Threads, of pthread_create(). */
void *hr_fleet_job_thread(void *fleet);
void *hr_fleet_clock_thread(void *fleet); /* pauses and stops what is idle */
void *hr_fleet_watch_thread(void *fleet); /* hears of what ended by itself */

/* With the lock or without it. */
void hr_fleet_took(struct hr_fleet *f, enum hr_fleet_phase phase, int64_t since_ms);

#endif
