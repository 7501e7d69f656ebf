/* Runs jobs: the engine's work for a sandbox, and the threads that do it. A sandbox's jobs are done
 * in order, one at a time. A job's result is recorded only if the sandbox is still in the state
 * that the job worked for: a stop that came meanwhile has its own job. */
#include "config.h"

#include "fleet/e2b/e2b.h"
#include "fleet/fleet_int.h"
#include "fleet/visits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/err.h"

#define RETRY_MOST_S 60

struct hr_fleet_job {
	struct hr_fleet_job *next;
	enum hr_job_kind kind;
	char id[HR_FLEET_ID];
	bool busy;     /* a thread runs the job */
	int64_t due_s; /* earliest time in seconds of the monotonic clock */
	int64_t added_ms;
	unsigned tries; /* number of failed tries */
};

/* Appends a job: a sandbox's jobs are done in order. Its earlier jobs that wait for a retry run
 * now, because this change may be what they waited for. Returns NULL without memory. */
static struct hr_fleet_job *
add(struct hr_fleet *f, enum hr_job_kind kind, const char *id, struct hr_err *err)
{
	struct hr_fleet_job *j = calloc(1, sizeof(*j)), **at = &f->jobs;

	if (j == NULL)
		return hr_err_null(err);
	j->kind = kind;
	j->added_ms = hr_now_ms();
	(void)snprintf(j->id, sizeof(j->id), "%s", id);
	for (; *at != NULL; at = &(*at)->next)
		if (!(*at)->busy && strcmp((*at)->id, id) == 0)
			(*at)->due_s = 0;
	*at = j;
	/* not only the threads of jobs wait for it */
	(void)pthread_cond_broadcast(&f->work);
	return j;
}

int
hr_fleet_add_job(struct hr_fleet *f, enum hr_job_kind kind, const char *id, struct hr_err *err)
{
	return add(f, kind, id, err) != NULL ? 0 : -1;
}

/* Returns true if the sandbox has no earlier job. */
static bool
is_first(const struct hr_fleet *f, const struct hr_fleet_job *j)
{
	const struct hr_fleet_job *k = f->jobs;

	while (k != j && strcmp(k->id, j->id) != 0)
		k = k->next;
	return k == j;
}

/* Returns the first due job whose sandbox has no earlier job, or NULL if there is none; *ret_due is
 * then the time in seconds at which a job will be due, 0 if there is no job. */
static struct hr_fleet_job *
next_job(struct hr_fleet *f, int64_t *ret_due)
{
	int64_t now = hr_now_ms() / 1000;
	struct hr_fleet_job *j;

	*ret_due = 0;
	if (f->leaving)
		return NULL;
	for (j = f->jobs; j != NULL; j = j->next) {
		if (j->busy || !is_first(f, j))
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
	/* the sandbox's next job may run now */
	(void)pthread_cond_broadcast(&f->work);
}

enum hr_fleet_result
hr_fleet_job_enter(
    struct hr_fleet *f, const char *id, struct hr_fleet_job **ret, struct hr_err *err)
{
	struct timespec until = {.tv_sec = hr_now_ms() / 1000 + f->set.patience_s};
	struct hr_fleet_job *j = add(f, HR_JOB_CALL, id, err);
	enum hr_fleet_result r = j != NULL ? HR_FLEET_OK : HR_FLEET_BROKEN;

	if (j != NULL)
		j->busy = true;
	while (r == HR_FLEET_OK && !is_first(f, j)) {
		if (f->leaving)
			r = HR_FLEET_LEAVING;
		else if (pthread_cond_timedwait(&f->work, &f->lock, &until) == ETIMEDOUT)
			r = HR_FLEET_LATE;
	}
	if (r != HR_FLEET_OK && j != NULL)
		drop_job(f, j);
	else
		*ret = j;
	return r;
}

void
hr_fleet_job_leave(struct hr_fleet *f, struct hr_fleet_job *j)
{
	drop_job(f, j);
}

static const struct {
	enum hr_fleet_state from, to, failed; /* failed == from means a retry */
	const char *name;
} job_kinds[] = {
    [HR_JOB_START] = {HR_FLEET_STARTING, HR_FLEET_RUNNING, HR_FLEET_DIED, "start"},
    [HR_JOB_PAUSE] = {HR_FLEET_PAUSING, HR_FLEET_PAUSED, HR_FLEET_RUNNING, "pause"},
    [HR_JOB_PAUSE_FILES] = {HR_FLEET_PAUSING, HR_FLEET_PAUSED, HR_FLEET_RUNNING, "pause"},
    [HR_JOB_RESUME] = {HR_FLEET_RESUMING, HR_FLEET_RUNNING, HR_FLEET_DIED, "resume"},
    [HR_JOB_STOP] = {HR_FLEET_STOPPING, HR_FLEET_STOPPED, HR_FLEET_STOPPING, "stop"},
    [HR_JOB_WARM] = {HR_FLEET_WARMING, HR_FLEET_WARM, HR_FLEET_DIED, "warm"},
    [HR_JOB_LOOK] = {HR_FLEET_STATES, HR_FLEET_STATES, HR_FLEET_STATES, "look"},
    [HR_JOB_CALL] = {HR_FLEET_STATES, HR_FLEET_STATES, HR_FLEET_STATES, "call"},
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

/* Starts a sandbox; one from the pool runs already, and gets only the rest of the request. */
static int
start_it(struct hr_fleet *f, struct hr_fleet_row *row, struct hr_err *err)
{
	int64_t begun = hr_now_ms();

	if (row->at[0] != '\0' && f->engine->claim != NULL) {
		if (f->engine->claim(f->engine_self, row, err) == 0 &&
		    hr_e2b_begin(row, err) == 0) {
			__atomic_add_fetch(&f->counts.warm, 1, __ATOMIC_RELAXED);
			hr_fleet_took(f, HR_PHASE_CLAIM, begun);
			return 0;
		}
		__atomic_add_fetch(&f->counts.warm_failed, 1, __ATOMIC_RELAXED);
		hr_log(HR_LOG_WARNING, "sandbox %s: cannot use the sandbox of the pool: %.400s",
		    row->id, err->msg);
	}
	begun = hr_now_ms();
	if (f->engine->start(f->engine_self, row, err) != 0 || hr_e2b_begin(row, err) != 0)
		return -1;
	__atomic_add_fetch(&f->counts.cold, 1, __ATOMIC_RELAXED);
	hr_fleet_took(f, HR_PHASE_CREATE, begun);
	return 0;
}

/* Returns true for a dead sandbox that keeps its files: only a client's stop, or the expiry of its
 * time, may delete them. */
bool
hr_fleet_keeps_files(const struct hr_fleet *f, const struct hr_fleet_row *row)
{
	return row->state == HR_FLEET_DIED && row->key != 0 && f->engine->clear != NULL;
}

struct clearing {
	struct hr_fleet *f;
	const struct hr_fleet_row *row;
	bool mine; /* false: another process has started the sandbox again */
};

/* Claims the row of the dead sandbox for this process. Returns false if another process has it.
 * Called without the lock, after the engine has looked at the sandbox. */
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

/* Fails if another process has started the id again, since that sandbox has the same names: nothing
 * is deleted, and the retry finds the sandbox in another state. */
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
	    [HR_JOB_PAUSE_FILES] = HR_PHASE_PAUSE,
	    [HR_JOB_RESUME] = HR_PHASE_RESUME,
	    [HR_JOB_STOP] = HR_PHASE_STOP,
	    [HR_JOB_WARM] = HR_PHASE_CREATE};
	int64_t begun = hr_now_ms();
	int r;

	switch (kind) {
	case HR_JOB_START: return start_it(f, row, err);
	case HR_JOB_WARM: r = f->engine->start(f->engine_self, row, err); break;
	case HR_JOB_PAUSE_FILES:
		r = f->engine->pause(f->engine_self, row->id, HR_PAUSE_FILES, err);
		break;
	case HR_JOB_PAUSE:
		/* clients of the E2B API are promised the memory */
		r = f->engine->pause(f->engine_self, row->id,
		    strstr(row->request, "\"e2b\":{") != NULL ? HR_PAUSE_MEMORY : HR_PAUSE_USUAL,
		    err);
		break;
	case HR_JOB_RESUME:
		r = f->engine->resume(f->engine_self, row, err);
		r = r == 0 ? hr_e2b_begin(row, err) : r;
		break;
	default:
		/* clients that ask why their streams ended learn already that the sandbox did */
		hr_fleet_visits_reset(__atomic_load_n(&f->nginx, __ATOMIC_RELAXED), row->id);
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
	case HR_JOB_PAUSE_FILES:
	case HR_JOB_PAUSE: c->paused += well; break;
	case HR_JOB_RESUME: c->resumed += well; break;
	default: c->stopped += well; break;
	}
}

/* Writes the result of a job to the store. Returns false if the job must run again. */
static bool
finish(struct hr_fleet *f, struct hr_fleet_job *j, struct hr_fleet_row *row, int r,
    const struct hr_err *why)
{
	enum hr_fleet_state from = job_kinds[j->kind].from;
	enum hr_fleet_state to = r == 0 ? job_kinds[j->kind].to : job_kinds[j->kind].failed;
	struct hr_err err = {0};
	bool is_placed = r == 0 && (to == HR_FLEET_RUNNING || to == HR_FLEET_WARM);
	bool moved = false, makes = j->kind != HR_JOB_STOP && j->kind != HR_JOB_PAUSE &&
				    j->kind != HR_JOB_PAUSE_FILES;

	count(f, j->kind, row, r == 0 ? NULL : why->msg);
	if (r != 0)
		hr_log(HR_LOG_WARNING, "sandbox %s: %s: %.600s", row->id, job_kinds[j->kind].name,
		    why->msg);
	if (to == from)
		return false;
	if (hr_fleet_move(f, row, from, to, r != 0 ? why->msg : NULL,
		is_placed ? HR_MOVE_PLACED : 0, &moved, &err) != 0) {
		/* the disk may be full: the work can be repeated */
		hr_log(HR_LOG_ERROR, "sandbox %s: %s", row->id, err.msg);
		return false;
	}
	if (moved && to == HR_FLEET_DIED)
		f->counts.died++;
	/* the job removes the remains of a sandbox that died, or that another process stopped while
	 * it was created here: that process knows nothing of the objects made since. A sandbox that
	 * has moved on is left alone. */
	if ((moved && to == HR_FLEET_DIED) || (!moved && makes && f->store->ops->claim != NULL))
		r = hr_fleet_add_job(f, HR_JOB_STOP, row->id, &err);
	else if (moved && r != 0)
		/* a failed pause may mean that the sandbox has ended, even before the pause */
		r = hr_fleet_add_job(f, HR_JOB_LOOK, row->id, &err);
	else
		r = 0;
	if (r != 0)
		hr_log(HR_LOG_ERROR, "sandbox %s: %s", row->id, err.msg);
	return true;
}

/* Keeps the log of a sandbox that has died, as an event. Releases the lock meanwhile. */
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

/* Finds the row of a job. Returns 1; 0 if the store has none, and *row has only the id; -1 if the
 * job must wait, because the store fails or another process works on this sandbox. */
static int
claim_row(struct hr_fleet *f, const struct hr_fleet_job *j, struct hr_fleet_row *row)
{
	struct hr_err err = {0};
	int found = f->store->ops->find(f->store, j->id, row, &err);
	bool mine = true;

	if (found == 1 && f->store->ops->claim != NULL && row->state == job_kinds[j->kind].from)
		found = f->store->ops->claim(f->store, row, &mine, &err) == 0 ? 1 : -1;
	if (found < 0)
		hr_log(HR_LOG_ERROR, "sandbox %s: %s", j->id, err.msg);
	if (found == 0)
		(void)snprintf(row->id, sizeof(row->id), "%s", j->id);
	return mine ? found : -1;
}

/* Returns true if the engine only removes remains, of an unknown or ended sandbox. */
static bool
only_clears(const struct hr_fleet_job *j, const struct hr_fleet_row *row, int found)
{
	if (j->kind != HR_JOB_STOP)
		return false;
	return found == 0 || (row->state > HR_FLEET_STOPPING && !hr_fleet_holds_room(row->state));
}

/* Returns true if the sandbox has a later job, which handles what this one could not find out. */
static bool
is_followed(const struct hr_fleet_job *j)
{
	const struct hr_fleet_job *k = j->next;

	while (k != NULL && strcmp(k->id, j->id) != 0)
		k = k->next;
	return k != NULL;
}

/* Runs a job. Returns true if it is over. Called with the lock, which it releases for the
 * engine. */
static bool
work_on(struct hr_fleet *f, struct hr_fleet_job *j)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	struct hr_err why = {0};
	int found = claim_row(f, j, &row), r;
	bool its_state;

	if (found < 0)
		return false;
	if (j->kind == HR_JOB_LOOK)
		return found == 0 || hr_fleet_find_out(f, &row) || is_followed(j);
	if (found == 1 && row.state == HR_FLEET_DIED && j->tries == 0 && f->engine->logs != NULL)
		keep_logs(f, &row);
	its_state = found == 1 && row.state == job_kinds[j->kind].from;
	if (!its_state && !only_clears(j, &row, found))
		return true; /* the sandbox has moved on without this job */
	if (j->kind == HR_JOB_START && (r = hr_fleet_is_whole(f, &row, &why)) <= 0) {
		if (r == 0)
			(void)hr_err_set(&why, HR_E_RUNTIME, "the fork did not complete");
		return r == 0 && finish(f, j, &row, -1, &why);
	}
	(void)pthread_mutex_unlock(&f->lock);
	if (j->tries == 0)
		hr_fleet_took(f, HR_PHASE_QUEUE, j->added_ms);
	r = do_it(f, j->kind, &row, &why);
	(void)pthread_mutex_lock(&f->lock);
	if (its_state)
		return finish(f, j, &row, r, &why);
	/* BUSY means that the remains are another process's. A removal at the first try follows a
	 * failed start, whose failure still counts. */
	if (r == 0 ? j->tries > 0 : why.code != HR_E_BUSY)
		hr_fleet_alert_engine(f, r == 0 ? NULL : why.msg);
	if (r != 0)
		hr_log(HR_LOG_WARNING, "sandbox %s: cannot remove its leftovers: %.600s", row.id,
		    why.msg);
	return r == 0;
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
