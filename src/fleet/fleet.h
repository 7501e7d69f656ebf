/* hr_fleet: the life of sandboxes: what is asked for is decided and written down at once, and done
 * by threads of its own, so that no request waits for an engine. The states are the store's; a
 * process that dies between any two lines is followed by one that reads them and goes on.
 *
 * One lock guards the store and everything here; nothing slow is done with it. A store that asks a
 * server lets the lock go meanwhile (share in store/store.h), so that a call of the store is a
 * point at which everything but the row may have changed. */
#ifndef HR_FLEET_FLEET_H
#define HR_FLEET_FLEET_H

#include <pthread.h>
#include <stdbool.h>

#include "fleet/engine.h"
#include "fleet/store/store.h"

struct hr_fleet_settings {
	struct hr_fleet_limits limits; /* of all keys together */
	const char *image;             /* of requests that name none; NULL: none */
	int64_t idle_pause_s;          /* without activity; 0: never */
	int64_t idle_stop_s;           /* after it was paused; 0: never */
	int64_t keep_ended_s;          /* what ended is told of; 0: for good */
	unsigned jobs;                 /* how much the engine does at the same time */
	unsigned waiting;              /* requests that may wait for a sandbox at the same time */
	unsigned patience_s;           /* how long each of them waits */
};

#define HR_FLEET_EVENT_LOGS "logs" /* what one that died said last */

struct hr_fleet_job;
struct hr_fleet_place; /* fleet_int.h */
struct hr_rest;
struct json_object;

/* How often, since the start. */
struct hr_fleet_counts {
	uint64_t cold, warm, warm_failed, pooled, make_failed, resumed, paused, stopped, died,
	    routes, refused_quota, refused_room, idle_paused, evicted;
};

/* How long what was asked for waits for a thread, and what an engine takes for what went well. */
enum hr_fleet_phase {
	HR_PHASE_QUEUE,
	HR_PHASE_CREATE, /* until it answers */
	HR_PHASE_CLAIM,  /* of a warm one */
	HR_PHASE_PAUSE,
	HR_PHASE_RESUME,
	HR_PHASE_STOP,
	HR_PHASES
};
#define HR_FLEET_BUCKETS 13
struct hr_fleet_times {
	uint64_t buckets[HR_FLEET_BUCKETS], ms; /* not cumulative */
};

/* What an operator is to know (alerts.c). */
enum hr_fleet_alert {
	HR_ALERT_STORE,        /* nothing can be written down */
	HR_ALERT_ENGINE,       /* it fails again and again, or tells of nothing any more */
	HR_ALERT_ROOM,         /* a start was refused: there is none */
	HR_ALERT_QUOTA,        /* a start was refused: the key has what it may have */
	HR_ALERT_POOL_EMPTY,   /* a start found nothing in it */
	HR_ALERT_POOL_FAILING, /* what it is filled with cannot be made */
};
#define HR_FLEET_ALERTS 16      /* at once; what comes beyond is in the log alone */
#define HR_FLEET_ALERTS_PAST 64 /* changes that are told */
struct hr_fleet_alerts {
	struct hr_fleet_alert_at {
		enum hr_fleet_alert what;
		char of[64]; /* which pool, or key; "" for none */
		char detail[300];
		int64_t at; /* seconds since 1970: since when; of a change: when */
		bool firing;
	} now[HR_FLEET_ALERTS], past[HR_FLEET_ALERTS_PAST]; /* in their order; the oldest first */
	size_t now_n, past_n;
	uint64_t changes;
};

/* How much there was at the end of each minute in which it changed (history.c), for an hour and
 * what was before it. Nobody wakes up for it: a minute is looked at before the first change
 * after it. */
#define HR_FLEET_HISTORY 64
struct hr_fleet_history {
	struct hr_fleet_level {
		int64_t time; /* seconds since 1970: the minute's first */
		int64_t states[HR_FLEET_STATES], factors, wanted;
	} v[HR_FLEET_HISTORY];
	size_t n;
	int64_t minute; /* which is not in v yet: its first second */
};

struct hr_fleet {
	struct hr_fleet_settings set;
	struct hr_store *store;
	const struct hr_fleet_engine *engine;
	void *engine_self;
	pthread_mutex_t lock;
	pthread_cond_t changed; /* a state, or what a stream of events goes by */
	pthread_cond_t work;    /* a job */
	pthread_cond_t clock;   /* something that can be idle */
	struct hr_fleet_job *jobs;
	unsigned waiting;
	struct hr_fleet_place *waiters, *turns; /* turns.c */
	pthread_cond_t turned;
	struct hr_fleet_stream *streams; /* of events (events.c) */
	bool leaving;                    /* another image takes over */
	bool drained;                    /* nothing new is started; also a note of the store */
	struct hr_fleet_pool *pools;
	bool setting_pools;     /* one request at a time */
	unsigned pools_changed; /* so often */
	int64_t crowded_s;      /* until then, by the monotonic clock, pools leave room to others */
	struct hr_fleet_counts counts;
	struct hr_fleet_times times[HR_PHASES];
	struct hr_fleet_alerts alerts;
	struct hr_fleet_history history;
	unsigned engine_failed; /* calls, one after the other */
};

/* Sandboxes that are made before anybody asks (pool.c). */
struct hr_fleet_pool {
	struct hr_fleet_pool *next;
	char name[64];
	char shape[HR_FLEET_SHAPE];
	char *request; /* JSON */
	int64_t factor, size;
	unsigned failed;      /* creates, one after the other */
	int64_t not_before_s; /* by the monotonic clock */
};

/* The store and the engine stay the caller's. Reads what a predecessor left, clears away what
 * nobody knows, goes on with what was begun, and starts the threads, which end with the process. */
int hr_fleet_init(struct hr_fleet *f, const struct hr_fleet_settings *set, struct hr_store *store,
    const struct hr_fleet_engine *engine, void *engine_self, struct hr_err *err);

/* All fill *row (HR_FLEET_OK, _CONFLICT), which is for hr_fleet_row_done().
 *
 * The one of this session that lives, resumed if it is paused; or a new one, which is on its way.
 */
enum hr_fleet_result hr_fleet_start(struct hr_fleet *f, const struct hr_fleet_key *k,
    const char *session, const char *request, int64_t factor, const char *shape,
    struct hr_fleet_row *row, struct hr_err *err);

enum hr_fleet_change { HR_FLEET_STOP, HR_FLEET_PAUSE, HR_FLEET_RESUME };
/* key 0: of all keys. What is so already is a success. */
enum hr_fleet_result hr_fleet_change(struct hr_fleet *f, int64_t key, const char *id,
    enum hr_fleet_change what, struct hr_fleet_row *row, struct hr_err *err);

/* Stops a sandbox of any key, for that reason. */
enum hr_fleet_result
hr_fleet_stop_for(struct hr_fleet *f, const char *id, const char *reason, struct hr_err *err);

/* Until it is decided what becomes of one that starts or resumes. */
enum hr_fleet_result
hr_fleet_wait(struct hr_fleet *f, const char *id, struct hr_fleet_row *row, struct hr_err *err);

/* Where a request for it goes: it is resumed, and waited for if `wait`, if need be. */
enum hr_fleet_result hr_fleet_route(
    struct hr_fleet *f, const char *id, bool wait, struct hr_fleet_row *row, struct hr_err *err);

/* The same for a request that has no key of the sandbox: it wakes nothing, waits for nothing and is
 * no activity. HR_FLEET_CONFLICT, _LATE: the sandbox does not run. */
enum hr_fleet_result
hr_fleet_look(struct hr_fleet *f, const char *id, struct hr_fleet_row *row, struct hr_err *err);

/* Nobody waits any more, and nothing is begun, in this process. */
void hr_fleet_leave(struct hr_fleet *f);

/* What Prometheus wants to know of a metric before its first sample; name without
 * "handrail_fleet_". */
void hr_fleet_put_head(struct hr_buf *b, const char *name, const char *type, const char *help);
/* As histograms of Prometheus. */
void hr_fleet_put_times(const struct hr_fleet *f, struct hr_buf *b);

/* As members of a JSON object; with the lock. */
void hr_fleet_put_alerts(const struct hr_fleet *f, struct hr_buf *b);
int hr_fleet_put_history(struct hr_fleet *f, struct hr_buf *b, struct hr_err *err);

/* Nothing new is started from now on, also by those who come after us; or it is again. */
int hr_fleet_drain(struct hr_fleet *f, bool on, struct hr_err *err);

/* pools: a JSON array of {"name", "size", "request": what a start sends, without a session and an
 * environment}; kept in the store. HR_E_INVAL: what is wrong with it. */
int hr_fleet_set_pools(struct hr_fleet *f, struct json_object *pools, struct hr_err *err);

/* For what a server at ADDR:PORT or unix:PATH of this machine is asked once, with 5 s in all; NULL:
 * no memory. The caller frees (hr_rest_free). */
struct hr_rest *hr_fleet_asker(const char *at);
/* When was it used last, in seconds since 1970? Now, if a connection to it is open on this machine;
 * else what it says of its commands. -1: it does not say. */
int64_t hr_fleet_ask_active(const struct hr_fleet_row *row);
/* Appends the address of a sandbox with that port as nginx connects to it. A connection that counts
 * keeps the sandbox from being idle; `at` has a port. */
void hr_fleet_put_way(struct hr_buf *b, const char *at, int port, bool counts);

#endif
