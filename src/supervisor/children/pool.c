/* Manages pools: the number of workers, and their start and end. Invariant: on the scoreboard, size
 * is the number of living processes of the pool. */
#include "config.h"

#include "supervisor/children/pool_int.h"

#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "supervisor/run/context.h"

#define SOON_MS 50 /* ms for which the only worker of a staged pool may be busy */

unsigned
hr_pool_count(const struct hr_pool *p, unsigned *ret_busy)
{
	const struct hr_pool_worker *w;
	unsigned n = 0, busy = 0;

	LIST_FOREACH(w, &p->workers, entry)
	{
		n++;
		busy += hr_pool_worker_busy(w);
	}
	if (ret_busy != NULL)
		*ret_busy = busy;
	return n;
}

static unsigned
pool_staying(const struct hr_pool *p)
{
	const struct hr_pool_worker *w;
	unsigned n = 0;

	LIST_FOREACH(w, &p->workers, entry)
	{
		n += !w->retiring;
	}
	return n;
}

void
hr_pool_publish(struct hr_pool *p)
{
	atomic_store(&hr_pool_counts_of(p)->size, hr_pool_count(p, NULL));
	p->svc.elsewhere = !LIST_EMPTY(&p->workers);
}

/* Returns true if the pool must not start a worker now. */
static bool
pool_rests(const struct hr_pool *p)
{
	return p->svc.state == HR_SERVICE_DOWN || hr_service_ends(&p->svc);
}

/* Checks for a full pool: a worker reports when it takes the last free place, but no process
 * reports when the last free worker ends. */
void
hr_pool_check_full(struct hr_pool *p)
{
	unsigned busy, n = hr_pool_count(p, &busy);

	if (!pool_rests(p) && n > 0 && busy == n)
		hr_pool_full(p);
}

static void
pool_limits(struct hr_pool *p)
{
	const struct hr_settings *c = &p->ctx->settings;
	const long long min[] = {
	    c->control_workers, c->files_workers, c->action_workers, c->live_workers, 0};
	const long long max[] = {c->control_workers_max,
	    c->files_workers_max + p->all->viewer_places, c->action_workers_max,
	    c->live_workers_max, 1};

	p->min = (unsigned)min[p->index];
	p->max = (unsigned)max[p->index];
	if (p->wanted < p->min)
		p->wanted = p->min;
	if (p->wanted > p->max)
		p->wanted = p->max;
}

static int64_t
idle_limit_ms(const struct hr_pool *p)
{
	return p->ctx->settings.worker_idle_timeout * 1000;
}

/* Looks for workers to retire after that time. */
static void
pool_watch_idle(struct hr_pool *p, int64_t ms)
{
	if (hr_service_ends(&p->svc) || p->wanted <= p->min || p->shrinking)
		return;
	p->shrinking = hr_watch_arm(p->shrink, ms, NULL) == 0;
}

static void
pool_ignore_demand(struct hr_pool *p)
{
	hr_watch_drop(&p->demand);
}

static void
pool_start(struct hr_pool *p, unsigned goal)
{
	struct hr_err err = {0};
	unsigned n;

	pool_ignore_demand(p);
	if (p->svc.state == HR_SERVICE_OFF)
		hr_service_move(&p->svc, HR_SERVICE_STARTING);
	for (n = pool_staying(p); n < goal; n++) {
		if (hr_pool_start_worker(p, &err) != 0) {
			hr_service_move(&p->svc, HR_SERVICE_DOWN);
			hr_service_retry(&p->svc, &err);
			p->ctx->start_failed(p->ctx, "a worker cannot be started");
			break;
		}
	}
	if (p->svc.state == HR_SERVICE_STARTING)
		hr_service_move(&p->svc, HR_SERVICE_READY);
	pool_watch_idle(p, idle_limit_ms(p));
}

void
hr_pool_fill(struct hr_pool *p)
{
	if (pool_rests(p))
		return;
	pool_limits(p);
	if (p->wanted == 0)
		hr_pool_start_on_demand(p);
	else
		pool_start(p, p->all->staged ? 1 : p->wanted);
}

static void
pool_demanded(void *arg)
{
	struct hr_pool *p = arg;

	pool_ignore_demand(p);
	if (p->wanted == 0)
		p->wanted = 1;
	hr_pool_fill(p);
}

void
hr_pool_start_on_demand(struct hr_pool *p)
{
	if (pool_rests(p) || p->demand != NULL || !hr_pool_gone(p))
		return;
	pool_limits(p);
	p->demand = hr_loop_readable(p->ctx->loop, p->listener, pool_demanded, p, NULL);
	if (p->demand != NULL)
		return;
	if (p->wanted == 0)
		p->wanted = 1;
	hr_pool_fill(p);
}

void
hr_pool_complete(struct hr_pool *p)
{
	hr_pool_fill(p);
	hr_pool_check_full(p); /* an earlier report was ignored */
}

void
hr_pool_full(struct hr_pool *p)
{
	unsigned staying = pool_staying(p), busy, more;

	if (hr_service_ends(&p->svc) || staying >= p->max)
		return;
	/* the single worker is soon free again, as a rule */
	if (p->all->staged && staying < p->wanted &&
	    (p->growing || hr_watch_arm(p->grow, SOON_MS, NULL) == 0)) {
		p->growing = true;
		return;
	}
	(void)hr_pool_count(p, &busy);
	/* grows by half, so that a burst takes few steps */
	more = staying / 2 > 0 ? staying / 2 : 1;
	p->wanted = staying + more < p->max ? staying + more : p->max;
	hr_log(HR_LOG_DEBUG, "pool %s grows from %u to %u workers, %u are busy", p->name, staying,
	    p->wanted, busy);
	if (pool_rests(p))
		return;
	pool_limits(p);
	pool_start(p, p->wanted);
}

/* Starts the workers that hr_pools.staged holds back, if no other one is free. */
static void
pool_grow(void *arg)
{
	struct hr_pool *p = arg;
	unsigned busy, n = hr_pool_count(p, &busy);

	p->growing = false;
	if (!pool_rests(p) && busy == n)
		pool_start(p, p->wanted);
}

/* Corrects the busy counter, which a worker's death between two instructions can leave wrong: only
 * once all workers have been idle for a while, so that none changes it meanwhile. */
static void
pool_settle_busy(struct hr_pool *p)
{
	struct hr_pool_counts *counts = hr_pool_counts_of(p);
	int64_t since, now = hr_now_ms();
	const struct hr_pool_worker *w;
	uint32_t busy = atomic_load(&counts->busy);

	LIST_FOREACH(w, &p->workers, entry)
	{
		since = atomic_load(&hr_pool_worker_slot(w)->since_ns) / 1000000;
		if (atomic_load(&hr_pool_worker_slot(w)->stage) != HR_STAGE_IDLE ||
		    now - since < 1000)
			return;
	}
	if (busy != 0)
		(void)atomic_compare_exchange_strong(&counts->busy, &busy, 0);
}

/* Retires workers that were idle the whole time, the longest idle first, but keeps a quarter of the
 * pool: bursts often repeat. The timer expires again when the next worker has been idle that long;
 * a full time would let each one stay for twice the time, since the timer is older than a worker's
 * rest. */
static void
pool_shrink(void *arg)
{
	struct hr_pool *p = arg;
	int64_t now = hr_now_ms(), limit = idle_limit_ms(p), next = limit;
	struct hr_pool_worker *w;
	unsigned spare = (p->wanted - p->min + 3) / 4 * 3 + 1;

	p->shrinking = false;
	if (hr_service_ends(&p->svc))
		return;
	pool_settle_busy(p);
	LIST_FOREACH(w, &p->workers, entry)
	{
		int64_t idle = now - atomic_load(&hr_pool_worker_slot(w)->since_ns) / 1000000;

		if (p->wanted <= p->min || spare == 0)
			break;
		if (w->retiring || atomic_load(&hr_pool_worker_slot(w)->stage) != HR_STAGE_IDLE)
			continue;
		if (idle < limit) {
			next = limit - idle < next ? limit - idle : next;
			continue;
		}
		hr_log(HR_LOG_DEBUG, "%s ends after %" PRId64 " ms without a request",
		    w->child.name, idle);
		p->wanted--;
		spare--;
		hr_pool_retire_worker(w);
	}
	pool_watch_idle(p, next);
}

/* Kills workers that should end but stay idle: they hold nothing. */
static void
pool_insist(void *arg)
{
	struct hr_pool *p = arg;
	struct hr_pool_worker *w;

	LIST_FOREACH(w, &p->workers, entry)
	{
		if ((w->retiring || hr_service_ends(&p->svc)) && !hr_pool_worker_busy(w)) {
			hr_log(HR_LOG_WARNING, "%s did not exit when asked to", w->child.name);
			hr_child_signal(&w->child, SIGKILL);
		}
	}
}

/* ---- the pool as a service with several processes ---- */

static struct hr_pool *
pool_of(const struct hr_service *svc)
{
	return svc->owner;
}

static void
pool_changed(struct hr_service *svc)
{
	pool_of(svc)->ctx->changed(pool_of(svc)->ctx);
}

static void
pool_again(struct hr_service *svc)
{
	hr_service_move(svc, HR_SERVICE_STARTING);
	hr_pool_fill(pool_of(svc));
}

static void
pool_signal(struct hr_service *svc, int sig)
{
	struct hr_pool_worker *w;

	LIST_FOREACH(w, &pool_of(svc)->workers, entry)
	{
		/* either one ends the worker; the signal also while it waits on the other */
		hr_channel_close(&w->channel);
		hr_child_signal(&w->child, sig);
	}
}

static const struct hr_service_ops pool_ops = {
    .changed = pool_changed,
    .again = pool_again,
    .signal = pool_signal,
};

void
hr_pools_init(struct hr_pools *all, struct hr_context *ctx, hr_pool_request_fn *request, void *arg)
{
	static const char *const names[HR_POOLS] = {"control", "files", "action", "live", "page"};
	struct hr_pool *p;
	unsigned i;

	memset(all, 0, sizeof(*all));
	all->request = request;
	all->arg = arg;
	all->image = -1;
	for (i = 0; i < HR_POOLS; i++) {
		p = &all->v[i];
		p->all = all;
		p->ctx = ctx;
		p->index = i;
		p->name = names[i];
		p->listener = -1;
		LIST_INIT(&p->workers);
		hr_service_init(&p->svc, &pool_ops, p, ctx->kids);
		(void)snprintf(p->svc.child.name, sizeof(p->svc.child.name), "pool %s", p->name);
	}
}

struct hr_pool_worker *
hr_pools_find(const struct hr_pools *all, int slot, pid_t pid)
{
	struct hr_pool_worker *w;
	unsigned i;

	for (i = 0; i < HR_POOLS; i++) {
		LIST_FOREACH(w, &all->v[i].workers, entry)
		{
			if (w->slot == slot && w->child.pid == pid && w->channel.fd >= 0)
				return w;
		}
	}
	return NULL;
}

int
hr_pool_open(struct hr_pool *p, struct hr_err *err)
{
	struct hr_context *ctx = p->ctx;
	char file[64];

	p->shrink = hr_loop_timer(ctx->loop, pool_shrink, p, err);
	p->insist = hr_loop_timer(ctx->loop, pool_insist, p, err);
	p->grow = hr_loop_timer(ctx->loop, pool_grow, p, err);
	if (p->shrink == NULL || p->insist == NULL || p->grow == NULL ||
	    hr_service_open(&p->svc, err) < 0)
		return -1;
	hr_pool_socket_name(p, file);
	pool_limits(p);
	p->listener = hr_rundir_listen(&ctx->run, file, ctx->id.nginx_uid, err);
	return p->listener >= 0 ? 0 : -1;
}

void
hr_pool_relieve(struct hr_pool *p)
{
	struct hr_pool_worker *w;

	LIST_FOREACH(w, &p->workers, entry)
	{
		if (w->retiring) {
			w->retiring = false;
			hr_pool_retire_worker(w);
		}
	}
}

void
hr_pool_recycle(struct hr_pool *p)
{
	struct hr_pool_worker *w;

	if (hr_service_ends(&p->svc))
		return;
	LIST_FOREACH(w, &p->workers, entry)
	{
		w->retiring = true;
	}
	p->wanted = p->min;
	if (p->svc.state == HR_SERVICE_DOWN)
		hr_service_move(&p->svc, HR_SERVICE_STARTING);
	hr_pool_fill(p);
	/* comes last, so that the socket always has a worker that accepts */
	hr_pool_relieve(p);
}

void
hr_pool_stop(struct hr_pool *p, bool fast)
{
	pool_ignore_demand(p);
	hr_watch_disarm(p->shrink);
	hr_watch_disarm(p->grow);
	hr_service_stop(&p->svc, fast ? SIGKILL : SIGTERM, 0);
	if (!hr_pool_gone(p) && p->insist != NULL)
		(void)hr_watch_arm(p->insist, HR_POOL_INSIST_MS, NULL);
}

bool
hr_pool_gone(const struct hr_pool *p)
{
	return LIST_EMPTY(&p->workers);
}

bool
hr_pool_serves(const struct hr_pool *p)
{
	/* a pool with min 0 starts a worker when a client connects */
	return p->demand != NULL || !hr_pool_gone(p) || (p->listener >= 0 && p->min == 0);
}

void
hr_pool_close(struct hr_pool *p)
{
	hr_service_done(&p->svc);
	hr_watch_free(p->shrink);
	hr_watch_free(p->insist);
	hr_watch_free(p->grow);
	pool_ignore_demand(p);
	p->shrink = p->insist = p->grow = NULL;
	hr_fd_close(&p->listener);
}
