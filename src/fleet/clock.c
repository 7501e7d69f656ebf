/* Works without a request: pauses and stops idle sandboxes, notices those that end by themselves,
 * and fills the pools. */
#include "config.h"

#include "fleet/e2b/e2b.h"
#include "fleet/fleet_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "proto/json.h"

#define FOREVER_MS INT64_MAX
#define RETRY_MS 5000 /* time to wait after the store could not be read or written */

/* Finds a sandbox that has been idle for long enough, as far as the edge knows. Returns 1; 0 if
 * there is none, with *ret_due the time when there may be one (0: never); or -1 after it has logged
 * the error. */
static int
find_idle(struct hr_fleet *f, enum hr_fleet_state state, int64_t limit_s, struct hr_fleet_row *row,
    int64_t *ret_due)
{
	struct hr_err err = {0};
	char id[HR_FLEET_ID];
	int64_t active = 0, due;
	int r;

	if (limit_s <= 0)
		return 0;
	r = f->store->ops->least_active(f->store, state, id, &active, &err);
	due = active + limit_s;
	if (r == 1 && due > (int64_t)time(NULL)) {
		*ret_due = *ret_due == 0 || due < *ret_due ? due : *ret_due;
		return 0;
	}
	if (r == 1)
		r = f->store->ops->find(f->store, id, row, &err);
	if (r < 0)
		hr_log(HR_LOG_ERROR, "cannot look for idle sandboxes: %s", err.msg);
	return r;
}

/* Moves a row that was idle when it was read, unless it was used since, and adds the job. Returns 1
 * if it moved, 0, or -1 after it has logged the error. */
static int
begin_idle(struct hr_fleet *f, const struct hr_fleet_row *row, enum hr_fleet_state to,
    enum hr_job_kind job, const char *reason)
{
	struct hr_err err = {0};
	bool moved = false;

	if (hr_fleet_begin(f, row, to, job, reason, HR_MOVE_UNUSED, &moved, &err) == 0)
		return moved;
	hr_log(HR_LOG_ERROR, "sandbox %s: %s", row->id, err.msg);
	return -1;
}

/* Pauses an idle sandbox. Called with the lock, which it releases to ask the sandbox. Returns -1 if
 * the store failed. */
static int
pause_if_idle(struct hr_fleet *f, struct hr_fleet_row *row)
{
	/* read before asking, so that the time of a busy sandbox is never before `now` */
	int64_t active, asked = row->active, now = (int64_t)time(NULL);
	struct hr_err err = {0};
	int r;

	(void)pthread_mutex_unlock(&f->lock);
	active = hr_fleet_ask_active(row);
	(void)pthread_mutex_lock(&f->lock);
	r = hr_fleet_look_again(f, row, &err);
	if (r == 0 || (r == 1 && (row->state != HR_FLEET_RUNNING || row->active != asked)))
		return 0; /* a client has come meanwhile */
	/* no answer does not prove that it is idle: ask again later */
	if (active < 0)
		active = now;
	if (r == 1 && active + f->set.idle_pause_s <= now) {
		r = begin_idle(f, row, HR_FLEET_PAUSING, HR_JOB_PAUSE, "idle");
		f->counts.idle_paused += r == 1;
		return r;
	}
	if (r == 1 && f->store->ops->active(f->store, row->id, active, &err) == 0)
		return 0;
	hr_log(HR_LOG_ERROR, "sandbox %s: %s", row->id, err.msg);
	return -1;
}

/* Stops or pauses a running sandbox whose time is over. Returns 1 if there was one; 0 if there is
 * none, with *ret_due_ms the wall time of the next end (0: never); or -1 after it has logged the
 * error. */
static int
end_one(struct hr_fleet *f, int64_t *ret_due_ms)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	HR_PUT struct json_object *request = NULL;
	enum hr_job_kind job = HR_JOB_STOP;
	bool moved, pauses;
	struct hr_err err = {0};
	char id[HR_FLEET_ID];
	int r = f->store->ops->first_end != NULL
		    ? f->store->ops->first_end(f->store, id, ret_due_ms, &err)
		    : 0;

	if (r == 1 && *ret_due_ms > hr_wall_ms())
		return 0;
	if (r == 1 && (r = f->store->ops->find(f->store, id, &row, &err)) == 1 &&
	    row.state == HR_FLEET_RUNNING) {
		pauses = row.end_pauses && !f->engine->stays;
		if (pauses)
			job = hr_e2b_pauses_cold(hr_e2b_of(&row, &request)) ? HR_JOB_PAUSE_FILES
									    : HR_JOB_PAUSE;
		r = hr_fleet_begin(f, &row, pauses ? HR_FLEET_PAUSING : HR_FLEET_STOPPING, job,
			"its time is over", 0, &moved, &err) == 0
			? 1
			: -1;
	}
	if (r < 0)
		hr_log(HR_LOG_ERROR, "cannot look for sandboxes whose time is over: %s", err.msg);
	return r;
}

/* Returns how many seconds a dead sandbox keeps its files, or 0 if it has none, or they stay. */
static int64_t
dead_limit_s(const struct hr_fleet *f)
{
	if (f->engine->clear == NULL)
		return 0;
	return f->set.idle_stop_s > 0 ? f->set.idle_stop_s : f->set.keep_ended_s;
}

/* Returns the milliseconds until a time in seconds, at least a second. */
static int64_t
later(int64_t due, int64_t now)
{
	return due > now ? (due - now) * 1000 : 1000;
}

void *
hr_fleet_clock_thread(void *arg)
{
	struct hr_fleet *f = arg;
	struct hr_fleet_row row;
	struct timespec until;
	int64_t due, due_ms, pool_due, wait_ms, now;
	int r, found;

	(void)pthread_mutex_lock(&f->lock);
	for (;;) {
		due = due_ms = 0;
		memset(&row, 0, sizeof(row));
		while ((r = end_one(f, &due_ms)) == 1)
			due_ms = 0;
		found =
		    r < 0 ? -1 : find_idle(f, HR_FLEET_RUNNING, f->set.idle_pause_s, &row, &due);
		if (found == 1)
			r = pause_if_idle(f, &row);
		else if (found == 0 && (found = find_idle(f, HR_FLEET_PAUSED, f->set.idle_stop_s,
					    &row, &due)) == 1)
			r = begin_idle(f, &row, HR_FLEET_STOPPING, HR_JOB_STOP, "paused for long");
		else if (found == 0 &&
			 (found = find_idle(f, HR_FLEET_DIED, dead_limit_s(f), &row, &due)) == 1)
			r = begin_idle(f, &row, HR_FLEET_STOPPING, HR_JOB_STOP, "dead for long");
		else
			r = found;
		hr_fleet_row_done(&row);
		hr_fleet_pool_turn(f, &pool_due);
		if (found == 1 && r >= 0)
			continue; /* there may be more idle sandboxes */
		now = hr_now_ms();
		wait_ms = r < 0 ? RETRY_MS : due > 0 ? later(due, (int64_t)time(NULL)) : FOREVER_MS;
		if (pool_due > 0 && later(pool_due, now / 1000) < wait_ms)
			wait_ms = later(pool_due, now / 1000);
		if (due_ms > 0 && due_ms - hr_wall_ms() < wait_ms)
			wait_ms = due_ms - hr_wall_ms();
		if (wait_ms == FOREVER_MS) {
			(void)pthread_cond_wait(&f->clock, &f->lock);
			continue;
		}
		now += wait_ms > 0 ? wait_ms : 1;
		until = (struct timespec){now / 1000, now % 1000 * 1000000};
		(void)pthread_cond_timedwait(&f->clock, &f->lock, &until);
	}
	return NULL;
}

/* Records that a sandbox has ended by itself. */
static int
note_end(struct hr_fleet *f, const char *id, const char *reason, struct hr_err *err)
{
	HR_CLEAN(hr_fleet_row_done) struct hr_fleet_row row = {.request = NULL};
	bool moved = false;
	int r = f->store->ops->find(f->store, id, &row, err);

	if (r == 1 && (row.state == HR_FLEET_RUNNING || row.state == HR_FLEET_WARM))
		r = hr_fleet_begin(f, &row, HR_FLEET_DIED, HR_JOB_STOP, reason, 0, &moved, err);
	f->counts.died += moved;
	return r < 0 ? -1 : 0;
}

/* Handles a report of the engine. A sandbox that ended by itself has died, and is not replaced.
 * Nothing reports its end again: if the store fails now, a job looks at the sandbox until that
 * succeeds. */
static int
on_news(void *arg, const char *id, const char *what, const char *detail)
{
	static const char *const ends[] = {"die", "oom", "exited", "destroy"};
	struct hr_fleet *f = arg;
	struct hr_err err = {0};
	char reason[200];
	size_t i;

	for (i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		if (strcmp(what, ends[i]) != 0)
			continue;
		(void)pthread_mutex_lock(&f->lock);
		(void)snprintf(
		    reason, sizeof(reason), "%s%s%s", what, *detail != '\0' ? ": " : "", detail);
		if (note_end(f, id, reason, &err) != 0) {
			hr_log(HR_LOG_ERROR, "sandbox %s: %s: %s", id, reason, err.msg);
			if (hr_fleet_add_job(f, HR_JOB_LOOK, id, &err) != 0)
				hr_log(HR_LOG_ERROR, "sandbox %s: %s", id, err.msg);
		}
		(void)pthread_mutex_unlock(&f->lock);
	}
	return 0;
}

void *
hr_fleet_watch_thread(void *arg)
{
	struct hr_fleet *f = arg;
	struct hr_err why = {0};

	(void)f->engine->watch(f->engine_self, on_news, f, &why);
	hr_log(HR_LOG_ERROR,
	    "lost the engine's event stream; the end of a sandbox goes unnoticed until the next "
	    "request to it: %.400s",
	    why.msg);
	(void)pthread_mutex_lock(&f->lock);
	hr_fleet_alert(f, HR_ALERT_ENGINE, "watch",
	    "lost the engine's event stream; the end of a sandbox goes unnoticed until the next "
	    "request to it");
	(void)pthread_mutex_unlock(&f->lock);
	return NULL;
}
