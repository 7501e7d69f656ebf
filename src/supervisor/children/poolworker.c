/* Manages a worker of a pool: its slot, its start, its end. Invariant: no two workers have the same
 * slot. */
#include "config.h"

#include "supervisor/children/pool_int.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/tempfiles.h"

static void
worker_free(struct hr_pool_worker *w)
{
	struct hr_worker_slot *slot = hr_pool_worker_slot(w);

	hr_channel_close(&w->channel);
	atomic_store(&slot->pid, 0);
	atomic_store(&slot->stage, HR_STAGE_FREE);
	w->pool->all->slot_used[w->slot] = false;
	free(w);
}

static void worker_ended(void *arg, const struct hr_exit *how);

static bool
worker_asks(void *arg, const char *packet, size_t len)
{
	struct hr_pool_worker *w = arg;

	return w->pool->all->request(w->pool->all->arg, w, packet, len);
}

struct hr_pool_worker *
hr_pool_new_worker(struct hr_pool *p, int slot)
{
	struct hr_pool_worker *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return NULL;
	w->pool = p;
	w->slot = slot;
	w->child.kids = p->ctx->kids;
	w->child.arg = w;
	w->child.on_exit = worker_ended;
	(void)snprintf(w->child.name, sizeof(w->child.name), "worker-%s-%d", p->name, slot);
	w->channel =
	    (struct hr_channel){.fd = -1, .name = w->child.name, .fn = worker_asks, .arg = w};
	return w;
}

static int
take_slot(struct hr_pools *all)
{
	int i;

	for (i = 0; i < HR_SCOREBOARD_SLOTS; i++) {
		if (!all->slot_used[i]) {
			all->slot_used[i] = true;
			return i;
		}
	}
	return -1;
}

int
hr_pool_start_worker(struct hr_pool *p, struct hr_err *err)
{
	int slot_no = take_slot(p->all), channel = -1, ok = -1;
	struct hr_worker_slot *slot;
	struct hr_pool_worker *w;

	if (slot_no < 0)
		return hr_err_set(
		    err, HR_E_BUSY, "all %d places for workers are taken", HR_SCOREBOARD_SLOTS);
	w = hr_pool_new_worker(p, slot_no);
	if (w == NULL) {
		p->all->slot_used[slot_no] = false;
		return hr_err_nomem(err);
	}
	slot = hr_pool_worker_slot(w);
	atomic_store(&slot->pool, p->index);
	atomic_store(&slot->requests, 0);
	atomic_store(&slot->since_ns, hr_now_ms() * 1000000);
	atomic_store(&slot->stage, HR_STAGE_STARTING);
	/* the new worker is counted before it runs: it must find itself in the pool's size */
	LIST_INSERT_HEAD(&p->workers, w, entry);
	hr_pool_publish(p);
	if (hr_channel_open(&w->channel, p->ctx->loop, &channel, err) == 0)
		ok = hr_pool_spawn_worker(w, channel, err);
	hr_fd_close(&channel);
	if (ok == 0) {
		atomic_store(&slot->pid, w->child.pid);
		return 0;
	}
	LIST_REMOVE(w, entry);
	worker_free(w);
	hr_pool_publish(p);
	return -1;
}

void
hr_pool_retire_worker(struct hr_pool_worker *w)
{
	if (w->retiring)
		return;
	w->retiring = true;
	hr_child_signal(&w->child, SIGTERM);
	(void)hr_watch_arm(w->pool->insist, HR_POOL_INSIST_MS, NULL);
}

/* Takes back the busy count of a worker that died. */
static void
worker_repair_busy(const struct hr_pool_worker *w)
{
	struct hr_pool_counts *counts = hr_pool_counts_of(w->pool);
	uint32_t busy = atomic_load(&counts->busy);

	if (!hr_pool_worker_busy(w))
		return;
	while (busy > 0 && !atomic_compare_exchange_weak(&counts->busy, &busy, busy - 1))
		;
}

static void
worker_repair_looker(const struct hr_pool_worker *w, pid_t pid)
{
	int32_t looker = (int32_t)pid;

	(void)atomic_compare_exchange_strong(&w->pool->ctx->board->disk_looker, &looker, 0);
}

static void
worker_ended(void *arg, const struct hr_exit *how)
{
	struct hr_pool_worker *w = arg;
	struct hr_pool *p = w->pool;
	uint32_t requests = atomic_load(&hr_pool_worker_slot(w)->requests);
	bool asked = w->retiring || hr_service_ends(&p->svc),
	     crashed = how->killed || how->code != 0;
	bool worked = atomic_load(&hr_pool_worker_slot(w)->stage) != HR_STAGE_STARTING;
	int64_t delay = 0;

	worker_repair_busy(w);
	worker_repair_looker(w, how->pid);
	hr_unread_bury(&p->ctx->board->unread, how->pid, hr_now_ms());
	hr_tempfiles_remove(&p->ctx->board->scraps[w->slot]);
	if (crashed && !asked)
		atomic_fetch_add(&p->ctx->board->metrics.restarts[HR_RESTART_WORKER], 1);
	if (crashed)
		hr_log(asked ? HR_LOG_INFO : HR_LOG_WARNING,
		    "%s ended after %u requests and %lld ms: %s", w->child.name, requests,
		    (long long)how->age_ms, hr_exit_text(how));
	LIST_REMOVE(w, entry);
	worker_free(w);
	hr_pool_publish(p);
	/* otherwise the worker served and ended normally */
	if (!asked && (crashed || requests == 0))
		delay = hr_service_delay(&p->svc, worked, how);
	if (delay > 0) {
		if (hr_service_failing(&p->svc))
			hr_log(HR_LOG_ERROR,
			    "pool %s: workers end right after their start; the next start is in "
			    "%lld ms",
			    p->name, (long long)delay);
		hr_service_down(&p->svc, HR_SERVICE_DOWN, delay);
	}
	if (hr_service_failing(&p->svc))
		p->ctx->start_failed(p->ctx, "workers end as soon as they start");
	if (p->svc.state == HR_SERVICE_STOPPING && hr_pool_gone(p))
		hr_service_move(&p->svc, HR_SERVICE_STOPPED);
	hr_pool_fill(p);
	hr_pool_check_full(p);
	p->ctx->changed(p->ctx);
}
