/* hr_pool: the workers behind one socket. At least `min` wait for requests; a worker that takes the
 * last free place says so, and the pool grows up to `max`; what is idle for long is retired. */
#ifndef HR_SUPERVISOR_CHILDREN_POOL_H
#define HR_SUPERVISOR_CHILDREN_POOL_H

#include <stdbool.h>
#include <sys/queue.h>

#include "base/err.h"
#include "proto/scoreboard.h"
#include "supervisor/children/channel.h"
#include "supervisor/children/child.h"
#include "supervisor/children/service.h"

struct hr_handover;
struct hr_context;
struct hr_watch;

struct hr_pool_worker {
	LIST_ENTRY(hr_pool_worker) entry;
	struct hr_child child;
	struct hr_pool *pool;
	int slot;
	struct hr_channel channel;
	bool retiring; /* told to end after the request in hand */
};

struct hr_pool {
	struct hr_pools *all;
	struct hr_context *ctx;
	const char *name;
	unsigned index;
	int listener;
	unsigned min, max;
	unsigned wanted; /* workers that are not retiring */
	LIST_HEAD(hr_pool_worker_list, hr_pool_worker) workers;
	/* OFF: none was asked for; READY: as many as wanted were started; DOWN: no start before its
	 * time, whoever still lives */
	struct hr_service svc;
	struct hr_watch *shrink; /* armed while there are more than min */
	struct hr_watch *insist; /* armed while somebody retires */
	struct hr_watch *demand; /* while it is empty on purpose, or NULL */
	bool shrinking;
};

#define HR_POOLS 5 /* control, files, action, live, page: also their index on the scoreboard */

enum hr_pool_index { HR_POOL_CONTROL, HR_POOL_FILES, HR_POOL_ACTION, HR_POOL_LIVE, HR_POOL_PAGE };

/* A message of w; false: it may not send that. */
typedef bool
hr_pool_request_fn(void *arg, struct hr_pool_worker *w, const char *packet, size_t len);

/* What they share. */
struct hr_pools {
	struct hr_pool v[HR_POOLS];
	hr_pool_request_fn *request;
	void *arg;
	bool slot_used[HR_SCOREBOARD_SLOTS];
	unsigned viewer_places; /* workers for files beyond those of the settings */
	bool staged;            /* a worker in a pool, until there is time for more */
	int image;              /* see worker_image() in workerproc.c; -1: not made */
	bool plain_image;       /* it cannot be made */
};

void
hr_pools_init(struct hr_pools *all, struct hr_context *ctx, hr_pool_request_fn *request, void *arg);
/* The worker on that slot if it is still the same process and can be talked to, or NULL. */
struct hr_pool_worker *hr_pools_find(const struct hr_pools *all, int slot, pid_t pid);

/* Makes the socket, or goes on with that of the image before us. */
int hr_pool_open(struct hr_pool *p, struct hr_err *err);
/* Takes size and limits from the settings; starts what is missing, see hr_pools.staged. */
void hr_pool_fill(struct hr_pool *p);
/* An empty one is filled when somebody connects, if it is not before. */
void hr_pool_start_on_demand(struct hr_pool *p);
/* The rest of what staged kept from starting. */
void hr_pool_complete(struct hr_pool *p);
/* A worker took the last free place. */
void hr_pool_full(struct hr_pool *p);
/* New workers on the same socket, then the old ones end, each after its request. */
void hr_pool_recycle(struct hr_pool *p);
/* Those of the image before us, which serve until there are ours: then they end as at a reload. */
void hr_pool_relieve(struct hr_pool *p);
/* No new ones. Idle workers end now, busy ones after their request; fast: at once. */
void hr_pool_stop(struct hr_pool *p, bool fast);
bool hr_pool_gone(const struct hr_pool *p);   /* no process is left */
bool hr_pool_serves(const struct hr_pool *p); /* who connects is answered */
unsigned hr_pool_count(const struct hr_pool *p, unsigned *ret_busy);
void hr_pool_close(struct hr_pool *p);

/* poolover.c: socket and workers for the next image of us, and the workers of the one before. */
int hr_pool_hand_over(const struct hr_pool *p, struct hr_handover *h, struct hr_err *err);
void hr_pool_adopt(struct hr_pool *p);
void hr_pool_socket_name(const struct hr_pool *p, char ret[64]); /* in the run directory */

/* workerproc.c: starts the worker's process, with its end of the channel. */
int hr_pool_spawn_worker(struct hr_pool_worker *w, int channel, struct hr_err *err);

#endif
