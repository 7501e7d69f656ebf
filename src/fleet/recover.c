/* Starts up: recovers a predecessor's state, and starts the threads. */
#include "config.h"

#include "fleet/fleet_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/grow.h"
#include "base/log.h"
#include "host/common/proc.h"

struct ids {
	char (*v)[HR_FLEET_ID];
	size_t n, room;
};

struct recovery {
	struct hr_fleet *f;
	struct hr_fleet_row *rows; /* the live rows */
	size_t n, room;
	struct ids live, there; /* ids of the live rows, and of the engine's sandboxes */
	bool nomem;
};

static void
add_id(struct recovery *rec, struct ids *ids, const char *id)
{
	if (hr_grow(&ids->v, ids->n, &ids->room, sizeof(*ids->v)) < 0) {
		rec->nomem = true;
		return;
	}
	(void)snprintf(ids->v[ids->n++], HR_FLEET_ID, "%s", id);
}

static int
compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

/* Sorts for has(): there may be thousands of ids. */
static void
sort(struct ids *ids)
{
	if (ids->n > 0)
		qsort(ids->v, ids->n, sizeof(*ids->v), compare);
}

static bool
has(const struct ids *ids, const char *id)
{
	return ids->n > 0 && bsearch(id, ids->v, ids->n, sizeof(*ids->v), compare) != NULL;
}

static void
keep_row(void *arg, const struct hr_fleet_row *row)
{
	struct recovery *rec = arg;

	if (hr_grow(&rec->rows, rec->n, &rec->room, sizeof(*rec->rows)) < 0) {
		rec->nomem = true;
		return;
	}
	rec->rows[rec->n] = *row;
	rec->rows[rec->n++].request = NULL;
	add_id(rec, &rec->live, row->id);
}

static void
keep_id(void *arg, const char *id)
{
	struct recovery *rec = arg;

	if (strlen(id) < HR_FLEET_ID) /* this is the service's own file */
		add_id(rec, &rec->there, id);
}

/* Compares the engine's state of a sandbox with the store's: running, paused or warm. */
static int
compare_states(struct hr_fleet *f, const struct hr_fleet_row *row, const char *state,
    const char *reason, struct hr_err *err)
{
	const char *want = row->state == HR_FLEET_PAUSED ? "paused" : "running";
	bool moved;

	if (row->state == HR_FLEET_WARM && !hr_fleet_pool_wants(f, row->shape))
		return hr_fleet_begin(
		    f, row, HR_FLEET_STOPPING, HR_JOB_STOP, "no pool needs it", 0, &moved, err);
	/* an engine reports a container that was stopped for a pause as "exited" */
	if (strcmp(state, want) == 0 || strcmp(state, "copying") == 0 ||
	    (row->state == HR_FLEET_PAUSED && strcmp(state, "exited") == 0))
		return 0;
	return hr_fleet_begin(f, row, HR_FLEET_DIED, HR_JOB_STOP, reason, 0, &moved, err);
}

/* Examines a sandbox recorded as running or paused, which may have ended while no service ran. */
static int
check_alive(struct recovery *rec, const struct hr_fleet_row *row, struct hr_err *err)
{
	char state[32] = "gone";
	struct hr_err why = {0};

	if (has(&rec->there, row->id) &&
	    rec->f->engine->state(rec->f->engine_self, row->id, state, &why) != 0) {
		/* one unreachable sandbox must not delay the service */
		hr_log(HR_LOG_ERROR, "sandbox %s: its state is unknown: %.400s", row->id, why.msg);
		return hr_fleet_add_job(rec->f, HR_JOB_LOOK, row->id, err);
	}
	return compare_states(rec->f, row, state, "ended while no service ran", err);
}

bool
hr_fleet_find_out(struct hr_fleet *f, struct hr_fleet_row *row)
{
	const enum hr_fleet_state was = row->state;
	char state[32] = "gone", reason[80];
	struct hr_err err = {0};
	int r;

	/* a job handles any other state */
	if (was != HR_FLEET_RUNNING && was != HR_FLEET_PAUSED && was != HR_FLEET_WARM)
		return true;
	(void)pthread_mutex_unlock(&f->lock);
	r = f->engine->state(f->engine_self, row->id, state, &err);
	(void)pthread_mutex_lock(&f->lock);
	/* a retry would ask the same Docker Engine */
	if (r != 0 && err.code == HR_E_UNSUPPORTED) {
		hr_log(HR_LOG_ERROR, "sandbox %s: its state is unknown: %.400s", row->id, err.msg);
		return true;
	}
	(void)snprintf(reason, sizeof(reason), "ended: the engine's state is \"%s\"", state);
	hr_fleet_alert_engine(f, r == 0 ? NULL : err.msg);
	if (r == 0)
		r = hr_fleet_look_again(f, row, &err) < 0 ? -1 : 0;
	/* another process may have paused or resumed it since the engine answered */
	if (r == 0 && row->state != was)
		return false;
	if (r == 0)
		r = compare_states(f, row, state, reason, &err);
	if (r != 0)
		hr_log(
		    HR_LOG_WARNING, "sandbox %s: its state is unknown: %.400s", row->id, err.msg);
	return r == 0;
}

static int
recover(struct recovery *rec, struct hr_err *err)
{
	struct hr_err why = {0};
	int r = 0;
	size_t i;

	if (rec->f->store->ops->each(rec->f->store, 0, true, keep_row, rec, err) != 0)
		return -1;
	if ((rec->f->engine->tidy != NULL &&
		rec->f->engine->tidy(rec->f->engine_self, &why) != 0) ||
	    rec->f->engine->list(rec->f->engine_self, keep_id, rec, &why) != 0)
		return hr_err_set(err, HR_E_SYS, "the engine: %.200s", why.msg);
	if (rec->nomem)
		return hr_err_nomem(err);
	sort(&rec->live);
	sort(&rec->there);
	for (i = 0; r == 0 && i < rec->n; i++) {
		r = hr_fleet_go_on(rec->f, &rec->rows[i], err);
		if (r == 0)
			r = check_alive(rec, &rec->rows[i], err);
		else
			r = r > 0 ? 0 : -1;
	}
	for (i = 0; r == 0 && i < rec->there.n; i++)
		/* checked again before the job of this sandbox */
		if (!has(&rec->live, rec->there.v[i]))
			r = hr_fleet_add_job(rec->f, HR_JOB_STOP, rec->there.v[i], err);
	return r;
}

/* Looks at a row; called after another process of the same store has changed it. */
static void
on_change(void *arg, const char *id)
{
	struct hr_fleet *f = arg;
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	struct hr_err err = {0};

	(void)pthread_mutex_lock(&f->lock);
	if (f->store->ops->find(f->store, id, &row, &err) < 0 ||
	    (row.request != NULL && hr_fleet_go_on(f, &row, &err) < 0))
		hr_log(HR_LOG_ERROR, "sandbox %s: %s", id, err.msg);
	(void)pthread_cond_broadcast(&f->changed);
	(void)pthread_cond_signal(&f->clock);
	(void)pthread_mutex_unlock(&f->lock);
}

static int
start_threads(struct hr_fleet *f, struct hr_err *err)
{
	int r = hr_thread_detached(hr_fleet_clock_thread, f, err);
	unsigned i;

	for (i = 0; r == 0 && i < f->set.jobs; i++)
		r = hr_thread_detached(hr_fleet_job_thread, f, err);
	if (r == 0 && f->engine->watch != NULL)
		r = hr_thread_detached(hr_fleet_watch_thread, f, err);
	if (r != 0)
		return -1;
	return f->store->ops->watch != NULL ? f->store->ops->watch(f->store, on_change, f, err) : 0;
}

int
hr_fleet_init(struct hr_fleet *f, const struct hr_fleet_settings *set, struct hr_store *store,
    const struct hr_fleet_engine *engine, void *engine_self, struct hr_err *err)
{
	struct recovery rec = {.f = f};
	pthread_condattr_t attr;
	int r;

	memset(f, 0, sizeof(*f));
	f->set = *set;
	f->store = store;
	f->engine = engine;
	f->engine_self = engine_self;
	(void)pthread_condattr_init(&attr);
	(void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	(void)pthread_mutex_init(&f->lock, NULL);
	(void)pthread_cond_init(&f->changed, &attr);
	(void)pthread_cond_init(&f->work, &attr);
	(void)pthread_cond_init(&f->clock, &attr);
	(void)pthread_cond_init(&f->turned, &attr);
	(void)pthread_condattr_destroy(&attr);
	(void)pthread_mutex_lock(&f->lock);
	if (store->ops->share != NULL)
		store->ops->share(store, &f->lock);
	r = hr_fleet_load(f, err);
	hr_fleet_history_keep(f);
	if (r == 0)
		r = recover(&rec, err);
	(void)pthread_mutex_unlock(&f->lock);
	free(rec.rows);
	free(rec.live.v);
	free(rec.there.v);
	return r == 0 ? start_threads(f, err) : -1;
}
