/* The machine of states. Each change of a state is a transaction, and a job for the engine follows
 * from it; jobs of one sandbox are done one after the other. What a job has done is written down
 * only if the state is still the one it worked for: a stop that came meanwhile has its own job. */
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

#define RETRY_MOST_S 60
#define TRIES 3 /* where another process was faster */

struct hr_fleet_job {
	struct hr_fleet_job *next;
	enum hr_job_kind kind;
	char id[HR_FLEET_ID];
	bool busy;     /* a thread is at it */
	int64_t due_s; /* not before, by the monotonic clock */
	int64_t added_ms;
	unsigned tries; /* that failed */
};

/* ---- jobs ---- */

/* To the end of the list: a sandbox's jobs are done in their order. Those before it that wait for
 * their next try have it now: what they wait for may be what changed. */
int
hr_fleet_add_job(struct hr_fleet *f, enum hr_job_kind kind, const char *id, struct hr_err *err)
{
	struct hr_fleet_job *j = calloc(1, sizeof(*j)), **at = &f->jobs;

	if (j == NULL)
		return hr_err_nomem(err);
	j->kind = kind;
	j->added_ms = hr_now_ms();
	(void)snprintf(j->id, sizeof(j->id), "%s", id);
	for (; *at != NULL; at = &(*at)->next)
		if (!(*at)->busy && strcmp((*at)->id, id) == 0)
			(*at)->due_s = 0;
	*at = j;
	(void)pthread_cond_signal(&f->work);
	return 0;
}

/* The first one that is due, of a sandbox that no earlier one is about; NULL: none, and *ret_due
 * (if not 0) is when there will be one. */
static struct hr_fleet_job *
next_job(struct hr_fleet *f, int64_t *ret_due)
{
	int64_t now = hr_now_ms() / 1000;
	struct hr_fleet_job *j, *k;

	*ret_due = 0;
	if (f->leaving)
		return NULL;
	for (j = f->jobs; j != NULL; j = j->next) {
		for (k = f->jobs; k != j && strcmp(k->id, j->id) != 0; k = k->next)
			;
		if (k != j || j->busy)
			continue;
		if (j->due_s <= now)
			return j;
		if (*ret_due == 0 || j->due_s < *ret_due)
			*ret_due = j->due_s;
	}
	return NULL;
}

static void
drop_job(struct hr_fleet *f, struct hr_fleet_job *j)
{
	struct hr_fleet_job **at = &f->jobs;

	while (*at != j)
		at = &(*at)->next;
	*at = j->next;
	free(j);
	/* the next of this sandbox may be done now */
	(void)pthread_cond_broadcast(&f->work);
}

/* With each that ends, so that there is never much to do. */
static void
forget_old(struct hr_fleet *f)
{
	struct hr_err err = {0};

	if (f->set.keep_ended_s > 0 && f->store->ops->forget != NULL &&
	    f->store->ops->forget(f->store, (int64_t)time(NULL) - f->set.keep_ended_s, &err) != 0)
		hr_log(HR_LOG_ERROR, "those that ended long ago: %s", err.msg);
}

static int
move(struct hr_fleet *f, const struct hr_fleet_row *row, enum hr_fleet_state from,
    enum hr_fleet_state to, const char *reason, bool placed, bool *ret_moved, struct hr_err *err)
{
	int r;

	hr_fleet_history_keep(f);
	r = f->store->ops->move(f->store, row, from, to, reason, placed, ret_moved, err);
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

static const struct {
	enum hr_fleet_state from, to, failed; /* failed == from: it is tried again */
	const char *name;
} job_kinds[] = {
    [HR_JOB_START] = {HR_FLEET_STARTING, HR_FLEET_RUNNING, HR_FLEET_DIED, "start"},
    [HR_JOB_PAUSE] = {HR_FLEET_PAUSING, HR_FLEET_PAUSED, HR_FLEET_RUNNING, "pause"},
    [HR_JOB_RESUME] = {HR_FLEET_RESUMING, HR_FLEET_RUNNING, HR_FLEET_DIED, "resume"},
    [HR_JOB_STOP] = {HR_FLEET_STOPPING, HR_FLEET_STOPPED, HR_FLEET_STOPPING, "stop"},
    [HR_JOB_WARM] = {HR_FLEET_WARMING, HR_FLEET_WARM, HR_FLEET_DIED, "warm"},
};

int
hr_fleet_go_on(struct hr_fleet *f, const struct hr_fleet_row *row, struct hr_err *err)
{
	unsigned i;

	for (i = 0; i < sizeof(job_kinds) / sizeof(*job_kinds); i++)
		if (job_kinds[i].from == row->state)
			return hr_fleet_add_job(f, (enum hr_job_kind)i, row->id, err) == 0 ? 1 : -1;
	return 0;
}

/* One that was taken from the pool runs already, and is given what it lacks. */
static int
start_it(struct hr_fleet *f, struct hr_fleet_row *row, struct hr_err *err)
{
	int64_t begun = hr_now_ms();

	if (row->at[0] != '\0' && f->engine->claim != NULL) {
		if (f->engine->claim(f->engine_self, row, err) == 0) {
			__atomic_add_fetch(&f->counts.warm, 1, __ATOMIC_RELAXED);
			hr_fleet_took(f, HR_PHASE_CLAIM, begun);
			return 0;
		}
		__atomic_add_fetch(&f->counts.warm_failed, 1, __ATOMIC_RELAXED);
		hr_log(HR_LOG_WARNING, "sandbox %s: the warm one is of no use: %.400s", row->id,
		    err->msg);
	}
	begun = hr_now_ms();
	if (f->engine->start(f->engine_self, row, err) != 0)
		return -1;
	__atomic_add_fetch(&f->counts.cold, 1, __ATOMIC_RELAXED);
	hr_fleet_took(f, HR_PHASE_CREATE, begun);
	return 0;
}

/* Only a client's stop, or the end of its time, may delete the files of a sandbox that has died. */
bool
hr_fleet_keeps_files(const struct hr_fleet *f, const struct hr_fleet_row *row)
{
	return row->state == HR_FLEET_DIED && row->key != 0 && f->engine->clear != NULL;
}

struct clearing {
	struct hr_fleet *f;
	const struct hr_fleet_row *row;
	bool mine; /* no other process has started it again */
};

/* Asks the store; called without the lock, and once the engine has looked at what has died. */
static bool
still_dead(void *arg)
{
	struct clearing *c = arg;
	struct hr_fleet *f = c->f;
	struct hr_err err = {0};

	if (f->store->ops->claim == NULL)
		return true;
	(void)pthread_mutex_lock(&f->lock);
	if (f->store->ops->claim(f->store, c->row, &c->mine, &err) != 0) {
		c->mine = false;
		hr_log(HR_LOG_ERROR, "sandbox %s: %s", c->row->id, err.msg);
	}
	(void)pthread_mutex_unlock(&f->lock);
	return c->mine;
}

/* Fails where another process has started it again, whose sandbox has the same names: nothing of it
 * is deleted, and the job finds it in another state when it is tried again. */
static int
clear(struct hr_fleet *f, struct hr_fleet_row *row, struct hr_err *err)
{
	struct clearing c = {f, row, true};
	int r = f->engine->clear(f->engine_self, row->id, still_dead, &c, err);

	return r == 0 && !c.mine ? hr_err_set(err, HR_E_BUSY, "another process works on it") : r;
}

static int
do_it(struct hr_fleet *f, enum hr_job_kind kind, struct hr_fleet_row *row, struct hr_err *err)
{
	static const enum hr_fleet_phase phases[] = {[HR_JOB_PAUSE] = HR_PHASE_PAUSE,
	    [HR_JOB_RESUME] = HR_PHASE_RESUME,
	    [HR_JOB_STOP] = HR_PHASE_STOP,
	    [HR_JOB_WARM] = HR_PHASE_CREATE};
	int64_t begun = hr_now_ms();
	int r;

	switch (kind) {
	case HR_JOB_START: return start_it(f, row, err);
	case HR_JOB_WARM: r = f->engine->start(f->engine_self, row, err); break;
	case HR_JOB_PAUSE: r = f->engine->pause(f->engine_self, row->id, err); break;
	case HR_JOB_RESUME: r = f->engine->resume(f->engine_self, row, err); break;
	default:
		r = hr_fleet_keeps_files(f, row) ? clear(f, row, err)
						 : f->engine->stop(f->engine_self, row->id, err);
		break;
	}
	if (r == 0)
		hr_fleet_took(f, phases[kind], begun);
	return r;
}

static void
count(struct hr_fleet *f, enum hr_job_kind kind, const struct hr_fleet_row *row, const char *why)
{
	struct hr_fleet_counts *c = &f->counts;
	bool well = why == NULL;

	hr_fleet_alert_engine(f, why);
	switch (kind) {
	case HR_JOB_START: c->make_failed += !well; break;
	case HR_JOB_WARM:
		c->pooled += well;
		c->make_failed += !well;
		hr_fleet_pool_made(f, row->shape, why);
		break;
	case HR_JOB_PAUSE: c->paused += well; break;
	case HR_JOB_RESUME: c->resumed += well; break;
	default: c->stopped += well; break;
	}
}

/* What came of a job, written down. false: it is to be done again. */
static bool
finish(struct hr_fleet *f, struct hr_fleet_job *j, struct hr_fleet_row *row, int r,
    const struct hr_err *why)
{
	enum hr_fleet_state from = job_kinds[j->kind].from;
	enum hr_fleet_state to = r == 0 ? job_kinds[j->kind].to : job_kinds[j->kind].failed;
	struct hr_err err = {0};
	bool moved = false, makes = j->kind != HR_JOB_STOP && j->kind != HR_JOB_PAUSE;

	count(f, j->kind, row, r == 0 ? NULL : why->msg);
	if (r != 0)
		hr_log(HR_LOG_WARNING, "sandbox %s: %s: %.600s", row->id, job_kinds[j->kind].name,
		    why->msg);
	if (to == from)
		return false;
	if (move(f, row, from, to, r != 0 ? why->msg : NULL,
		r == 0 && (to == HR_FLEET_RUNNING || to == HR_FLEET_WARM), &moved, &err) != 0) {
		/* the disk is full, perhaps: what was done can be done again */
		hr_log(HR_LOG_ERROR, "sandbox %s: %s", row->id, err.msg);
		return false;
	}
	if (moved && to == HR_FLEET_DIED)
		f->counts.died++;
	/* what is left of it; or another process stopped it while it was made here, and does not
	 * know of what came after that. One that goes on all the same is left alone. */
	if (((moved && to == HR_FLEET_DIED) || (!moved && makes && f->store->ops->claim != NULL)) &&
	    hr_fleet_add_job(f, HR_JOB_STOP, row->id, &err) != 0)
		hr_log(HR_LOG_ERROR, "sandbox %s: %s", row->id, err.msg);
	return true;
}

/* What it said last is told when it is no longer there. The lock is let go. */
static void
keep_logs(struct hr_fleet *f, const struct hr_fleet_row *row)
{
	struct hr_err why = {0};
	struct hr_err err = {0};
	HR_FREE char *text = NULL;
	int r;

	(void)pthread_mutex_unlock(&f->lock);
	r = f->engine->logs(f->engine_self, row->id, &text, &why);
	(void)pthread_mutex_lock(&f->lock);
	if (r != 0)
		hr_log(HR_LOG_INFO, "sandbox %s: its log: %.400s", row->id, why.msg);
	else if (*text != '\0' &&
		 f->store->ops->event(f->store, row->id, HR_FLEET_EVENT_LOGS, text, &err) != 0)
		hr_log(HR_LOG_ERROR, "sandbox %s: %s", row->id, err.msg);
	(void)pthread_cond_broadcast(&f->changed);
}

/* true: the job is over. Called with the lock, which is let go for the engine. */
static bool
work_on(struct hr_fleet *f, struct hr_fleet_job *j)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	struct hr_err why = {0};
	struct hr_err err = {0};
	int found = f->store->ops->find(f->store, j->id, &row, &err), r;
	bool over = true, mine = true;

	if (found == 1 && f->store->ops->claim != NULL && row.state == job_kinds[j->kind].from)
		found = f->store->ops->claim(f->store, &row, &mine, &err) == 0 ? 1 : -1;
	if (found < 0)
		hr_log(HR_LOG_ERROR, "sandbox %s: %s", j->id, err.msg);
	if (found < 0 || !mine)
		return false;
	/* what nobody knows, and what died, is only cleared away */
	if (found == 0)
		(void)snprintf(row.id, sizeof(row.id), "%s", j->id);
	if (found == 1 && row.state == HR_FLEET_DIED && j->tries == 0 && f->engine->logs != NULL)
		keep_logs(f, &row);
	if (found == 0 ? j->kind == HR_JOB_STOP
		       : row.state == job_kinds[j->kind].from ||
			     (j->kind == HR_JOB_STOP && row.state > HR_FLEET_STOPPING &&
				 !hr_fleet_holds_room(row.state))) {
		(void)pthread_mutex_unlock(&f->lock);
		if (j->tries == 0)
			hr_fleet_took(f, HR_PHASE_QUEUE, j->added_ms);
		r = do_it(f, j->kind, &row, &why);
		(void)pthread_mutex_lock(&f->lock);
		if (found == 1 && row.state == job_kinds[j->kind].from)
			over = finish(f, j, &row, r, &why);
		else
			over = r == 0;
	}
	return over;
}

void *
hr_fleet_job_thread(void *arg)
{
	struct hr_fleet *f = arg;
	struct hr_fleet_job *j;
	struct timespec until = {0};
	int64_t due, wait_s;

	(void)pthread_mutex_lock(&f->lock);
	for (;;) {
		j = next_job(f, &due);
		if (j == NULL && due == 0) {
			(void)pthread_cond_wait(&f->work, &f->lock);
		} else if (j == NULL) {
			until.tv_sec = due;
			(void)pthread_cond_timedwait(&f->work, &f->lock, &until);
		} else {
			j->busy = true;
			if (work_on(f, j)) {
				drop_job(f, j);
				continue;
			}
			wait_s = j->tries < 6 ? (int64_t)1 << j->tries : RETRY_MOST_S;
			j->tries++;
			j->due_s = hr_now_ms() / 1000 + wait_s;
			j->busy = false;
		}
	}
	return NULL;
}

/* ---- what is asked for ---- */

/* Moves and adds the job that follows. *ret_moved false: it was in another state by then. */
int
hr_fleet_begin(struct hr_fleet *f, const struct hr_fleet_row *row, enum hr_fleet_state to,
    enum hr_job_kind job, const char *reason, bool *ret_moved, struct hr_err *err)
{
	if (move(f, row, row->state, to, reason, false, ret_moved, err) != 0)
		return -1;
	return *ret_moved ? hr_fleet_add_job(f, job, row->id, err) : 0;
}

/* Again what the store says of it. */
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

/* One that lives goes on. */
static int
wake(struct hr_fleet *f, struct hr_fleet_row *row, struct hr_err *err)
{
	bool moved;

	if (row->state != HR_FLEET_PAUSED && row->state != HR_FLEET_PAUSING)
		return 0;
	/* a pause that is under way is done first: jobs of one sandbox keep their order */
	if (hr_fleet_begin(f, row, HR_FLEET_RESUMING, HR_JOB_RESUME, NULL, &moved, err) != 0)
		return -1;
	return hr_fleet_look_again(f, row, err) < 0 ? -1 : 0;
}

static enum hr_fleet_result
reserve(
    struct hr_fleet *f, const struct hr_fleet_key *k, struct hr_fleet_row *row, struct hr_err *err)
{
	enum hr_fleet_result r = HR_FLEET_NO_ROOM;

	hr_fleet_history_keep(f);
	if (!f->drained) {
		r = f->store->ops->reserve(f->store, row, &k->limits, &f->set.limits, err);
		hr_fleet_alert_start(f, k, row, r, err);
	}
	f->counts.refused_quota += r == HR_FLEET_QUOTA;
	f->counts.refused_room += r == HR_FLEET_NO_ROOM;
	if (r == HR_FLEET_NO_ROOM && !f->drained)
		hr_fleet_pool_yield(f);
	(void)pthread_cond_signal(&f->clock); /* one of the pool was taken, perhaps */
	if (r == HR_FLEET_OK)
		(void)pthread_cond_broadcast(&f->changed);
	/* whether it was written is not always known: whoever looks after it finds out */
	if ((r == HR_FLEET_OK || (r == HR_FLEET_BROKEN && f->store->ops->claim != NULL)) &&
	    hr_fleet_add_job(f, HR_JOB_START, row->id, err) != 0)
		return HR_FLEET_BROKEN; /* the next process goes on with it */
	return r;
}

int
hr_fleet_compose(int64_t key, const char *session, const char *request, int64_t factor,
    const char *shape, struct hr_fleet_row *row, struct hr_err *err)
{
	row->key = key;
	row->state = key != 0 ? HR_FLEET_STARTING : HR_FLEET_WARMING;
	(void)snprintf(row->shape, sizeof(row->shape), "%s", shape);
	row->factor = factor;
	row->created = row->active = (int64_t)time(NULL);
	(void)snprintf(row->session, sizeof(row->session), "%s", session);
	row->request = strdup(request);
	if (row->request == NULL)
		return hr_err_nomem(err);
	return hr_random_hex(row->id, HR_FLEET_ID - 1, err) < 0 ||
		       hr_random_hex(row->session_key, sizeof(row->session_key) - 1, err) < 0
		   ? -1
		   : 0;
}

enum hr_fleet_result
hr_fleet_start(struct hr_fleet *f, const struct hr_fleet_key *k, const char *session,
    const char *request, int64_t factor, const char *shape, struct hr_fleet_row *row,
    struct hr_err *err)
{
	enum hr_fleet_result r = HR_FLEET_CONFLICT;
	int found, i;

	memset(row, 0, sizeof(*row));
	(void)pthread_mutex_lock(&f->lock);
	/* another process may begin one between the look and the reservation */
	for (i = 0; i < TRIES && r == HR_FLEET_CONFLICT; i++) {
		hr_fleet_row_done(row);
		found = f->store->ops->find_session(f->store, k->id, session, false, row, err);
		if (found == 1)
			r = wake(f, row, err) == 0 ? HR_FLEET_OK : HR_FLEET_BROKEN;
		else if (found < 0 ||
			 hr_fleet_compose(k->id, session, request, factor, shape, row, err) != 0)
			r = HR_FLEET_BROKEN;
		else
			r = reserve(f, k, row, err);
	}
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}

/* What leads where: from the states on the left to the one behind. */
static const struct {
	unsigned from, already; /* bits of states */
	enum hr_fleet_state to;
	enum hr_job_kind job;
} changes[] = {
#define BIT(s) (1u << HR_FLEET_##s)
    [HR_FLEET_STOP] = {BIT(STARTING) | BIT(RUNNING) | BIT(PAUSING) | BIT(PAUSED) | BIT(RESUMING),
	BIT(STOPPING) | BIT(STOPPED) | BIT(DIED), HR_FLEET_STOPPING, HR_JOB_STOP},
    [HR_FLEET_PAUSE] = {BIT(RUNNING), BIT(PAUSING) | BIT(PAUSED), HR_FLEET_PAUSING, HR_JOB_PAUSE},
    [HR_FLEET_RESUME] = {BIT(PAUSING) | BIT(PAUSED), BIT(STARTING) | BIT(RUNNING) | BIT(RESUMING),
	HR_FLEET_RESUMING, HR_JOB_RESUME},
#undef BIT
};

static enum hr_fleet_result
change_it(struct hr_fleet *f, struct hr_fleet_row *row, enum hr_fleet_change what,
    const char *reason, struct hr_err *err)
{
	bool moved = false, ends;
	unsigned is;
	int i;

	/* another process may have moved it, and we have not heard of that: what is asked for is
	 * asked of what it is now */
	for (i = 0; i < TRIES && !moved; i++) {
		is = 1u << row->state;
		ends = what == HR_FLEET_STOP && hr_fleet_keeps_files(f, row);
		if ((changes[what].already & is) != 0 && !ends)
			return HR_FLEET_OK;
		if ((changes[what].from & is) == 0 && !ends)
			return HR_FLEET_CONFLICT;
		if (what == HR_FLEET_PAUSE && f->engine->stays)
			return HR_FLEET_UNABLE;
		if (hr_fleet_begin(
			f, row, changes[what].to, changes[what].job, reason, &moved, err) != 0 ||
		    hr_fleet_look_again(f, row, err) < 0)
			return HR_FLEET_BROKEN;
	}
	return moved ? HR_FLEET_OK : HR_FLEET_CONFLICT;
}

static enum hr_fleet_result
change_for(struct hr_fleet *f, int64_t key, const char *id, enum hr_fleet_change what,
    const char *reason, struct hr_fleet_row *row, struct hr_err *err)
{
	enum hr_fleet_result r;
	int found;

	memset(row, 0, sizeof(*row));
	(void)pthread_mutex_lock(&f->lock);
	found = f->store->ops->find(f->store, id, row, err);
	if (found < 0)
		r = HR_FLEET_BROKEN;
	else if (found == 0 || (key != 0 && row->key != key))
		r = HR_FLEET_NOT_FOUND;
	else
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
hr_fleet_stop_for(struct hr_fleet *f, const char *id, const char *reason, struct hr_err *err)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};

	return change_for(f, 0, id, HR_FLEET_STOP, reason, &row, err);
}

/* ---- waiting ---- */

static bool
is_settled(enum hr_fleet_state s)
{
	return s != HR_FLEET_STARTING && s != HR_FLEET_RESUMING && s != HR_FLEET_PAUSING;
}

/* With the lock. */
static enum hr_fleet_result
wait_for(struct hr_fleet *f, struct hr_fleet_row *row, struct hr_err *err)
{
	struct timespec until = {.tv_sec = hr_now_ms() / 1000 + f->set.patience_s};
	enum hr_fleet_result r = HR_FLEET_OK;
	struct hr_fleet_place place;

	if (is_settled(row->state))
		return HR_FLEET_OK;
	/* those who wait leave threads for those who need not */
	if (!hr_fleet_place_take(f, &place, row->key))
		return HR_FLEET_LATE;
	while (r == HR_FLEET_OK && !is_settled(row->state)) {
		if (f->leaving)
			r = HR_FLEET_LEAVING;
		else if (pthread_cond_timedwait(&f->changed, &f->lock, &until) == ETIMEDOUT)
			r = HR_FLEET_LATE;
		if (hr_fleet_look_again(f, row, err) < 0)
			r = HR_FLEET_BROKEN;
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
	(void)pthread_mutex_unlock(&f->lock);
}

enum hr_fleet_result
hr_fleet_wait(struct hr_fleet *f, const char *id, struct hr_fleet_row *row, struct hr_err *err)
{
	enum hr_fleet_result r;
	int found;

	memset(row, 0, sizeof(*row));
	(void)pthread_mutex_lock(&f->lock);
	found = f->store->ops->find(f->store, id, row, err);
	r = found < 0 ? HR_FLEET_BROKEN : found == 0 ? HR_FLEET_NOT_FOUND : wait_for(f, row, err);
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}

/* A tenth of the time is exact enough, and most requests write nothing. */
static int
note_use(struct hr_fleet *f, const struct hr_fleet_row *row, struct hr_err *err)
{
	int64_t now = (int64_t)time(NULL);

	return f->set.idle_pause_s > 0 && now - row->active > f->set.idle_pause_s / 10
		   ? f->store->ops->active(f->store, row->id, now, err)
		   : 0;
}

/* Without the lock, under which others may be waiting for a store that is far away. */
static bool
route_known(struct hr_fleet *f, const char *id, struct hr_fleet_row *row, struct hr_err *err)
{
	if (f->store->ops->known == NULL || f->store->ops->known(f->store, id, row, err) != 1)
		return false;
	if (row->key != 0 && row->state == HR_FLEET_RUNNING && note_use(f, row, err) == 0) {
		__atomic_add_fetch(&f->counts.routes, 1, __ATOMIC_RELAXED);
		return true;
	}
	hr_fleet_row_done(row);
	return false;
}

enum hr_fleet_result
hr_fleet_route(
    struct hr_fleet *f, const char *id, bool wait, struct hr_fleet_row *row, struct hr_err *err)
{
	enum hr_fleet_result r = HR_FLEET_OK;
	int found;

	memset(row, 0, sizeof(*row));
	if (route_known(f, id, row, err))
		return HR_FLEET_OK;
	(void)pthread_mutex_lock(&f->lock);
	__atomic_add_fetch(&f->counts.routes, 1, __ATOMIC_RELAXED);
	found = f->store->ops->find(f->store, id, row, err);
	if (found <= 0 || row->key == 0) { /* nobody has one of the pool */
		r = found < 0 ? HR_FLEET_BROKEN : HR_FLEET_NOT_FOUND;
	} else if (row->state != HR_FLEET_RUNNING) {
		if (wake(f, row, err) != 0)
			r = HR_FLEET_BROKEN;
		else if (!wait && !is_settled(row->state))
			r = HR_FLEET_LATE;
		else if ((r = wait_for(f, row, err)) == HR_FLEET_OK &&
			 row->state != HR_FLEET_RUNNING)
			r = HR_FLEET_CONFLICT;
	}
	if (r == HR_FLEET_OK && note_use(f, row, err) != 0)
		r = HR_FLEET_BROKEN;
	(void)pthread_mutex_unlock(&f->lock);
	return r;
}
