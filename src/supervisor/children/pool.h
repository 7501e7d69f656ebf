/* hr_pool: manages the workers on one socket. At least `min` wait for requests; a worker that takes
 * the last free place reports it, and the pool grows up to `max`; long idle workers are retired. */
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
	bool retiring; /* the worker ends after the current request */
};

struct hr_pool {
	struct hr_pools *all;
	struct hr_context *ctx;
	const char *name;
	unsigned index;
	int listener;
	unsigned min, max;
	unsigned wanted; /* number of workers that are not retiring */
	LIST_HEAD(hr_pool_worker_list, hr_pool_worker) workers;
	/* OFF: not requested; READY: all wanted workers were started; DOWN: no start before a
	 * delay, even if workers live */
	struct hr_service svc;
	struct hr_watch *shrink; /* armed while there are more than `min` workers */
	struct hr_watch *insist; /* armed while workers retire */
	struct hr_watch *demand; /* armed while the pool is empty on purpose; or NULL */
	struct hr_watch *grow;   /* armed while the only worker of a staged pool is busy */
	bool shrinking, growing;
};

#define HR_POOLS 5 /* control, files, action, live, page; also the index on the scoreboard */

enum hr_pool_index { HR_POOL_CONTROL, HR_POOL_FILES, HR_POOL_ACTION, HR_POOL_LIVE, HR_POOL_PAGE };

/* Handles a message of w. Returns false if it is not permitted. */
typedef bool
hr_pool_request_fn(void *arg, struct hr_pool_worker *w, const char *packet, size_t len);

/* State that all pools share. */
struct hr_pools {
	struct hr_pool v[HR_POOLS];
	hr_pool_request_fn *request;
	void *arg;
	bool slot_used[HR_SCOREBOARD_SLOTS];
	unsigned viewer_places; /* number of workers for files beyond the settings' number */
	bool staged;            /* one worker per pool, until it needs more or has time for more */
	int image;              /* see worker_image() in workerproc.c; -1: none */
	bool plain_image;       /* the image cannot be made */
};

void
hr_pools_init(struct hr_pools *all, struct hr_context *ctx, hr_pool_request_fn *request, void *arg);
/* Returns the worker in `slot` if its process is still `pid` and can be reached, or NULL. */
struct hr_pool_worker *hr_pools_find(const struct hr_pools *all, int slot, pid_t pid);

/* Makes the socket, or takes over that of the previous image. */
int hr_pool_open(struct hr_pool *p, struct hr_err *err);
/* Applies size and limits from the settings, and starts missing workers, see hr_pools.staged. */
void hr_pool_fill(struct hr_pool *p);
/* Fills an empty pool once a client connects, or now if the socket cannot be watched. */
void hr_pool_start_on_demand(struct hr_pool *p);
/* Starts the workers that hr_pools.staged held back. */
void hr_pool_complete(struct hr_pool *p);
/* Grows the pool after a worker took the last free place: at once, or if hr_pools.staged holds
 * workers back, after a moment in which none becomes free. */
void hr_pool_full(struct hr_pool *p);
/* Starts new workers on the same socket; then the old ones end, each after its request. */
void hr_pool_recycle(struct hr_pool *p);
/* Retires the previous image's workers, which serve until the new ones do. */
void hr_pool_relieve(struct hr_pool *p);
/* Starts no new workers. Idle workers end now, busy ones after their request; with `fast` all end
 * at once. */
void hr_pool_stop(struct hr_pool *p, bool fast);
bool hr_pool_gone(const struct hr_pool *p);   /* Returns true if no process is left. */
bool hr_pool_serves(const struct hr_pool *p); /* Returns true if a connection will be served. */
unsigned hr_pool_count(const struct hr_pool *p, unsigned *ret_busy);
void hr_pool_close(struct hr_pool *p);

/* Hands socket and workers to the next image of this process, or adopts those of the previous image
 * (poolover.c). */
int hr_pool_hand_over(const struct hr_pool *p, struct hr_handover *h, struct hr_err *err);
void hr_pool_adopt(struct hr_pool *p);
/* Writes the socket's name relative to the run directory. */
void hr_pool_socket_name(const struct hr_pool *p, char ret[64]);

/* Starts the worker's process, and gives it its end of the channel (workerproc.c). */
int hr_pool_spawn_worker(struct hr_pool_worker *w, int channel, struct hr_err *err);

#endif
