/* Connects pool.c, poolworker.c and poolover.c. */
#ifndef HR_SUPERVISOR_CHILDREN_POOL_INT_H
#define HR_SUPERVISOR_CHILDREN_POOL_INT_H

#include "supervisor/children/pool.h"

#include <stdatomic.h>

#include "supervisor/run/context.h"

#define HR_POOL_INSIST_MS 5000 /* ms for an idle worker to end */

static inline struct hr_worker_slot *
hr_pool_worker_slot(const struct hr_pool_worker *w)
{
	return &w->pool->ctx->board->slots[w->slot];
}

static inline bool
hr_pool_worker_busy(const struct hr_pool_worker *w)
{
	uint32_t stage = atomic_load(&hr_pool_worker_slot(w)->stage);

	return stage == HR_STAGE_READING || stage == HR_STAGE_RUNNING || stage == HR_STAGE_WRITING;
}

static inline struct hr_pool_counts *
hr_pool_counts_of(const struct hr_pool *p)
{
	return &p->ctx->board->pools[p->index];
}

/* ---- poolworker.c ---- */

/* Makes a worker without a process, in that slot, in no list. Returns NULL without memory. */
struct hr_pool_worker *hr_pool_new_worker(struct hr_pool *p, int slot);
int hr_pool_start_worker(struct hr_pool *p, struct hr_err *err);
/* Ends the worker after its current request. */
void hr_pool_retire_worker(struct hr_pool_worker *w);

/* ---- pool.c ---- */

void hr_pool_publish(struct hr_pool *p);    /* Publishes the size on the scoreboard. */
void hr_pool_check_full(struct hr_pool *p); /* Grows the pool if no worker is idle. */

#endif
