/* Implements the state machine. Each change of a state is a transaction; the job for the engine
 * follows from the new state (jobs.c). */
#include "config.h"

#include "fleet/fleet_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"
#include "base/err.h"

#define TRIES 3 /* number of attempts when another process wins the race */

/* Deletes old rows; called for each sandbox that ends, so that there is never much to delete. */
static void
forget_old(struct hr_fleet *f)
{
	struct hr_err err = {0};

	if (f->set.keep_ended_s > 0 && f->store->ops->forget != NULL &&
	    f->store->ops->forget(f->store, (int64_t)time(NULL) - f->set.keep_ended_s, &err) != 0)
		hr_log(HR_LOG_ERROR, "cannot delete old sandboxes from the store: %s", err.msg);
}

int
hr_fleet_move(struct hr_fleet *f, const struct hr_fleet_row *row, enum hr_fleet_state from,
    enum hr_fleet_state to, const char *reason, unsigned how, bool *ret_moved, struct hr_err *err)
{
	int r;

	hr_fleet_history_keep(f);
	r = f->store->ops->move(f->store, row, from, to, reason, how, ret_moved, err);
	hr_fleet_alert(f, HR_ALERT_STORE, "", r != 0 ? err->msg : NULL);
	if (r != 0)
		return -1;
	if (*ret_moved && !hr_fleet_holds_room(to)) {
		hr_fleet_alert_room(f, row->key);
		forget_old(f);
	}
	(void)pthread_cond_broadcast(&f->changed);
	(void)pthread_cond_signal(&f->clock);
	return 0;
}

int
hr_fleet_begin(struct hr_fleet *f, const struct hr_fleet_row *row, enum hr_fleet_state to,
    enum hr_job_kind job, const char *reason, unsigned how, bool *ret_moved, struct hr_err *err)
{
	if (hr_fleet_move(f, row, row->state, to, reason, how, ret_moved, err) != 0)
		return -1;
	return *ret_moved ? hr_fleet_add_job(f, job, row->id, err) : 0;
}

enum hr_fleet_result
hr_fleet_find(
    struct hr_fleet *f, int64_t key, const char *id, struct hr_fleet_row *row, struct hr_err *err)
{
	int found = f->store->ops->find(f->store, id, row, err);

	if (found < 0)
		return HR_FLEET_BROKEN;
	return found == 0 || (key != 0 && row->key != key) ? HR_FLEET_NOT_FOUND : HR_FLEET_OK;
}

enum hr_fleet_result
hr_fleet_get(
    struct hr_fleet *f, int64_t key, const char *id, struct hr_fleet_row *row, struct hr_err *err)
{
	enum hr_fleet_result r;

	(void)pthread_mutex_lock(&f->lock);
	r = hr_fleet_find(f, key, id, row, err);
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}

int
hr_fleet_look_again(struct hr_fleet *f, struct hr_fleet_row *row, struct hr_err *err)
{
	struct hr_fleet_row now = {.request = NULL};
	int r = f->store->ops->find(f->store, row->id, &now, err);

	if (r == 1) {
		hr_fleet_row_done(row);
		*row = now;
	}
	return r;
}

static bool
is_asleep(enum hr_fleet_state s)
{
	return s == HR_FLEET_PAUSED || s == HR_FLEET_PAUSING;
}

/* Resumes a paused sandbox; leaves a live one alone. HR_FLEET_CONFLICT, _NOT_FOUND: another process
 * ended it, or removed it, meanwhile. */
static enum hr_fleet_result
wake(struct hr_fleet *f, struct hr_fleet_row *row, struct hr_err *err)
{
	bool moved = false;
	int i, found = 1;

	/* a pause that ends meanwhile moves the row first */
	for (i = 0; i < TRIES && found > 0 && is_asleep(row->state); i++) {
		/* a pending pause is done first: jobs of one sandbox keep their order */
		if (hr_fleet_begin(
			f, row, HR_FLEET_RESUMING, HR_JOB_RESUME, NULL, 0, &moved, err) != 0 ||
		    (found = hr_fleet_look_again(f, row, err)) < 0)
			return HR_FLEET_BROKEN;
	}
	if (found == 0)
		return HR_FLEET_NOT_FOUND;
	return hr_fleet_has_session(row->state) && !is_asleep(row->state) ? HR_FLEET_OK
									  : HR_FLEET_CONFLICT;
}

struct same_key {
	int64_t id;
	bool valid;
};

static void
on_key(void *arg, const struct hr_fleet_key *k)
{
	struct same_key *s = arg;

	s->valid |= k->id == s->id && hr_fleet_key_valid(k);
}

/* Checks the key again: a request's key was checked before the request waited for the lock. */
static enum hr_fleet_result
check_key(struct hr_fleet *f, int64_t id, struct hr_err *err)
{
	struct same_key s = {.id = id};

	if (f->store->ops->keys(f->store, on_key, &s, err) != 0)
		return HR_FLEET_BROKEN;
	return s.valid ? HR_FLEET_OK : HR_FLEET_REVOKED;
}

enum hr_fleet_result
hr_fleet_may_start(void *arg, struct hr_err *err)
{
	const struct hr_fleet_starter *s = arg;

	if (s->f->drained)
		return HR_FLEET_DRAINED;
	return s->key != 0 ? check_key(s->f, s->key, err) : HR_FLEET_OK;
}

enum hr_fleet_result
hr_fleet_reserve(
    struct hr_fleet *f, const struct hr_fleet_key *k, struct hr_fleet_row *row, struct hr_err *err)
{
	struct hr_fleet_starter s = {f, k->id};
	enum hr_fleet_result r;

	hr_fleet_history_keep(f);
	r = f->store->ops->reserve(
	    f->store, row, &k->limits, &f->set.limits, hr_fleet_may_start, &s, err);
	if (r != HR_FLEET_DRAINED && r != HR_FLEET_REVOKED)
		hr_fleet_alert_start(f, k, row, r, err);
	f->counts.refused_quota += r == HR_FLEET_QUOTA;
	f->counts.refused_room += r == HR_FLEET_NO_ROOM || r == HR_FLEET_DRAINED;
	if (r == HR_FLEET_NO_ROOM)
		hr_fleet_pool_yield(f);
	(void)pthread_cond_signal(&f->clock); /* the pool may need a replacement */
	if (r == HR_FLEET_OK)
		(void)pthread_cond_broadcast(&f->changed);
	/* the write may have succeeded despite the error: the job finds out */
	if ((r == HR_FLEET_OK || (r == HR_FLEET_BROKEN && f->store->ops->claim != NULL)) &&
	    hr_fleet_add_job(f, HR_JOB_START, row->id, err) != 0)
		return HR_FLEET_BROKEN; /* the next process continues the start */
	return r;
}

int
hr_fleet_compose(int64_t key, const char *session, const char *request, int64_t factor,
    const char *shape, struct hr_fleet_row *row, struct hr_err *err)
{
	struct timespec now;
	char digits[4];

	(void)clock_gettime(CLOCK_REALTIME, &now);
	row->key = key;
	row->state = key != 0 ? HR_FLEET_STARTING : HR_FLEET_WARMING;
	(void)snprintf(row->shape, sizeof(row->shape), "%s", shape);
	row->factor = factor;
	row->created = row->active = (int64_t)now.tv_sec;
	(void)snprintf(row->session, sizeof(row->session), "%s", session);
	row->request = strdup(request);
	if (row->request == NULL)
		return hr_err_nomem(err);
	if (hr_random_hex(row->id, HR_FLEET_ID - 1, err) < 0 ||
	    hr_fleet_session_key(row->session_key, err) < 0)
		return -1;
	/* lists are ordered by `created` and the id, which starts with the milliseconds */
	(void)snprintf(digits, sizeof(digits), "%03x", (unsigned)(now.tv_nsec / 1000000) % 1000);
	memcpy(row->id, digits, 3);
	return 0;
}

enum hr_fleet_result
hr_fleet_start(struct hr_fleet *f, const struct hr_fleet_key *k, const char *session,
    const char *request, int64_t factor, const char *shape, const struct hr_fleet_term *term,
    struct hr_fleet_row *row, struct hr_err *err)
{
	enum hr_fleet_result r = HR_FLEET_CONFLICT;
	int found, i;

	memset(row, 0, sizeof(*row));
	(void)pthread_mutex_lock(&f->lock);
	/* another process may start or end a sandbox between the look-up and the change */
	for (i = 0; i < TRIES && r == HR_FLEET_CONFLICT; i++) {
		hr_fleet_row_done(row);
		found = f->store->ops->find_session(f->store, k->id, session, false, row, err);
		if (found == 1 && (r = check_key(f, k->id, err)) == HR_FLEET_OK)
			r = wake(f, row, err);
		if (found == 1)
			r = r == HR_FLEET_NOT_FOUND ? HR_FLEET_CONFLICT : r;
		else if (found < 0 ||
			 hr_fleet_compose(k->id, session, request, factor, shape, row, err) != 0)
			r = HR_FLEET_BROKEN;
		else {
			row->life_ms = term != NULL ? term->ms : 0;
			row->end_pauses = term != NULL && term->pauses;
			r = hr_fleet_reserve(f, k, row, err);
		}
	}
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}

static void
set_term(struct hr_fleet_row *row, const struct hr_fleet_term *term)
{
	int64_t ends = hr_wall_ms() + term->ms;

	if (row->state == HR_FLEET_RUNNING &&
	    !(term->lengthen && (row->ends_ms == 0 || row->ends_ms > ends)))
		row->ends_ms = ends;
	/* a running sandbox keeps its life, for a resume by a request */
	if (term->ms > 0 && !(term->lengthen && row->state == HR_FLEET_RUNNING))
		row->life_ms = term->ms;
	row->end_pauses = term->pauses;
}

enum hr_fleet_result
hr_fleet_lease(struct hr_fleet *f, int64_t key, const char *id, const struct hr_fleet_term *term,
    struct hr_fleet_row *row, struct hr_err *err)
{
	enum hr_fleet_result r = HR_FLEET_CONFLICT;
	bool set = false;
	int found, i;

	memset(row, 0, sizeof(*row));
	(void)pthread_mutex_lock(&f->lock);
	found = f->store->ops->find(f->store, id, row, err);
	for (i = 0;
	     i < TRIES && !set && found == 1 && row->key == key && hr_fleet_has_session(row->state);
	     i++) {
		set_term(row, term);
		if (f->store->ops->lease(f->store, row, &set, err) != 0)
			found = -1;
		else if (!set)
			found = hr_fleet_look_again(f, row, err);
	}
	if (found < 0)
		r = HR_FLEET_BROKEN;
	else if (found == 0 || row->key != key)
		r = HR_FLEET_NOT_FOUND;
	else if (set)
		r = HR_FLEET_OK;
	(void)pthread_cond_signal(&f->clock);
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}

/* The transitions: from the states on the left to the state on the right. */
static const struct {
	unsigned from, already; /* bits of states */
	enum hr_fleet_state to;
	enum hr_job_kind job;
	unsigned how; /* HR_MOVE_* */
} changes[] = {
#define BIT(s) (1u << HR_FLEET_##s)
    [HR_FLEET_STOP] = {BIT(STARTING) | BIT(RUNNING) | BIT(PAUSING) | BIT(PAUSED) | BIT(RESUMING),
	BIT(STOPPING) | BIT(STOPPED) | BIT(DIED), HR_FLEET_STOPPING, HR_JOB_STOP, 0},
    [HR_FLEET_PAUSE] = {BIT(RUNNING), BIT(PAUSING) | BIT(PAUSED), HR_FLEET_PAUSING, HR_JOB_PAUSE,
	0},
    [HR_FLEET_PAUSE_FILES] = {BIT(RUNNING), BIT(PAUSING) | BIT(PAUSED), HR_FLEET_PAUSING,
	HR_JOB_PAUSE_FILES, 0},
    [HR_FLEET_RESUME] = {BIT(PAUSING) | BIT(PAUSED), BIT(STARTING) | BIT(RUNNING) | BIT(RESUMING),
	HR_FLEET_RESUMING, HR_JOB_RESUME, 0},
    [HR_FLEET_RESUME_NEW_KEY] = {BIT(PAUSING) | BIT(PAUSED),
	BIT(STARTING) | BIT(RUNNING) | BIT(RESUMING), HR_FLEET_RESUMING, HR_JOB_RESUME,
	HR_MOVE_NEW_KEY},
#undef BIT
};

static enum hr_fleet_result
change_it(struct hr_fleet *f, struct hr_fleet_row *row, enum hr_fleet_change what,
    const char *reason, struct hr_err *err)
{
	bool moved = false, ends;
	const int64_t key = row->key;
	unsigned is;
	int i, found = 1;

	/* another process may have moved the row unnoticed: decide again by its present state */
	for (i = 0; i < TRIES && !moved; i++) {
		if (found == 0 || row->key != key)
			return HR_FLEET_NOT_FOUND;
		is = 1u << row->state;
		ends = what == HR_FLEET_STOP && hr_fleet_keeps_files(f, row);
		if ((changes[what].already & is) != 0 && !ends)
			return HR_FLEET_OK;
		if ((changes[what].from & is) == 0 && !ends)
			return HR_FLEET_CONFLICT;
		if (what == HR_FLEET_PAUSE && f->engine->stays)
			return HR_FLEET_UNABLE;
		if (hr_fleet_begin(f, row, changes[what].to, changes[what].job, reason,
			changes[what].how, &moved, err) != 0 ||
		    (found = hr_fleet_look_again(f, row, err)) < 0)
			return HR_FLEET_BROKEN;
	}
	if (!moved && (found == 0 || row->key != key))
		return HR_FLEET_NOT_FOUND;
	return moved ? HR_FLEET_OK : HR_FLEET_CONFLICT;
}

static enum hr_fleet_result
change_for(struct hr_fleet *f, int64_t key, const char *id, enum hr_fleet_change what,
    const char *reason, struct hr_fleet_row *row, struct hr_err *err)
{
	enum hr_fleet_result r;

	memset(row, 0, sizeof(*row));
	(void)pthread_mutex_lock(&f->lock);
	r = hr_fleet_find(f, key, id, row, err);
	if (r == HR_FLEET_OK)
		r = change_it(f, row, what, reason, err);
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}

enum hr_fleet_result
hr_fleet_change(struct hr_fleet *f, int64_t key, const char *id, enum hr_fleet_change what,
    struct hr_fleet_row *row, struct hr_err *err)
{
	return change_for(f, key, id, what, NULL, row, err);
}

enum hr_fleet_result
hr_fleet_stop_for(
    struct hr_fleet *f, int64_t key, const char *id, const char *reason, struct hr_err *err)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};

	return change_for(f, key, id, HR_FLEET_STOP, reason, &row, err);
}

/* ---- waiting ---- */

static bool
is_settled(enum hr_fleet_state s)
{
	return s != HR_FLEET_STARTING && s != HR_FLEET_RESUMING && s != HR_FLEET_PAUSING;
}

/* Waits until the sandbox has settled. Called with the lock. */
static enum hr_fleet_result
wait_for(struct hr_fleet *f, struct hr_fleet_row *row, struct hr_err *err)
{
	struct timespec until = {.tv_sec = hr_now_ms() / 1000 + f->set.patience_s};
	enum hr_fleet_result r = HR_FLEET_OK;
	struct hr_fleet_place place;
	int found;

	if (is_settled(row->state))
		return HR_FLEET_OK;
	/* waiters must leave threads for requests that need not wait */
	if (!hr_fleet_place_take(f, &place, row->key))
		return HR_FLEET_LATE;
	while (r == HR_FLEET_OK && !is_settled(row->state)) {
		if (f->leaving)
			r = HR_FLEET_LEAVING;
		else if (pthread_cond_timedwait(&f->changed, &f->lock, &until) == ETIMEDOUT)
			r = HR_FLEET_LATE;
		found = hr_fleet_look_again(f, row, err);
		if (found <= 0)
			r = found < 0 ? HR_FLEET_BROKEN : HR_FLEET_NOT_FOUND;
	}
	hr_fleet_place_give(f, &place);
	return r == HR_FLEET_LATE && is_settled(row->state) ? HR_FLEET_OK : r;
}

void
hr_fleet_leave(struct hr_fleet *f)
{
	(void)pthread_mutex_lock(&f->lock);
	f->leaving = true;
	(void)pthread_cond_broadcast(&f->changed);
	(void)pthread_cond_broadcast(&f->work);
	(void)pthread_mutex_unlock(&f->lock);
}

enum hr_fleet_result
hr_fleet_wait(struct hr_fleet *f, const char *id, struct hr_fleet_row *row, struct hr_err *err)
{
	enum hr_fleet_result r;

	memset(row, 0, sizeof(*row));
	(void)pthread_mutex_lock(&f->lock);
	r = hr_fleet_find(f, 0, id, row, err);
	if (r == HR_FLEET_OK)
		r = wait_for(f, row, err);
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}

/* Notes a use. A tenth of the limit is exact enough, and most requests then write nothing. Returns
 * 1 if the use was noted, 0, or -1. */
static int
note_use(struct hr_fleet *f, const struct hr_fleet_row *row, struct hr_err *err)
{
	int64_t now = (int64_t)time(NULL);

	if (f->set.idle_pause_s <= 0 || now - row->active <= f->set.idle_pause_s / 10)
		return 0;
	return f->store->ops->active(f->store, row->id, now, err) == 0 ? 1 : -1;
}

/* Finds a row. Runs without the lock, for which others may wait while a distant store answers. */
static bool
route_known(struct hr_fleet *f, const char *id, struct hr_fleet_row *row, struct hr_err *err)
{
	int noted = 1;

	if (f->store->ops->known == NULL)
		return false;
	/* after the note, look again: an idle pause that began before the note has not seen it */
	while (noted == 1 && f->store->ops->known(f->store, id, row, err) == 1) {
		noted =
		    row->key != 0 && row->state == HR_FLEET_RUNNING ? note_use(f, row, err) : -1;
		if (noted == 0) {
			__atomic_add_fetch(&f->counts.routes, 1, __ATOMIC_RELAXED);
			return true;
		}
		hr_fleet_row_done(row);
	}
	return false;
}

enum hr_fleet_result
hr_fleet_route(
    struct hr_fleet *f, const char *id, bool wait, struct hr_fleet_row *row, struct hr_err *err)
{
	enum hr_fleet_result r;

	memset(row, 0, sizeof(*row));
	if (route_known(f, id, row, err))
		return HR_FLEET_OK;
	(void)pthread_mutex_lock(&f->lock);
	__atomic_add_fetch(&f->counts.routes, 1, __ATOMIC_RELAXED);
	r = hr_fleet_find(f, 0, id, row, err);
	if (r == HR_FLEET_OK && row->key == 0) { /* the sandbox is warm: no key may use it */
		r = HR_FLEET_NOT_FOUND;
	} else if (r == HR_FLEET_OK && row->state != HR_FLEET_RUNNING) {
		r = wake(f, row, err);
		if (r == HR_FLEET_OK && !wait && !is_settled(row->state))
			r = HR_FLEET_LATE;
		else if (r == HR_FLEET_OK && (r = wait_for(f, row, err)) == HR_FLEET_OK &&
			 row->state != HR_FLEET_RUNNING)
			r = HR_FLEET_CONFLICT;
	}
	if (r == HR_FLEET_OK && note_use(f, row, err) < 0)
		r = HR_FLEET_BROKEN;
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}
