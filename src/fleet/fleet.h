/* hr_fleet: manages the life of sandboxes. A request is decided and recorded at once, and carried
 * out by threads, so that no request waits for an engine. The store holds the states: if the
 * process dies between any two lines, the next one reads them and continues. One lock guards the
 * store and everything here; no slow call is made under it. A store that asks a server releases the
 * lock meanwhile (share in store/store.h), so after a call of the store all that was read before it
 * may have changed: the row, the pools, the jobs. */
#ifndef HR_FLEET_FLEET_H
#define HR_FLEET_FLEET_H

#include <pthread.h>
#include <stdbool.h>

#include "fleet/engine.h"
#include "fleet/store/store.h"

struct hr_fleet_settings {
	struct hr_fleet_limits limits; /* limits for all keys together */
	const char *image;             /* image of requests that name none; NULL: none */
	const char *const *environ;
	int64_t idle_pause_s; /* seconds without activity; 0: never */
	int64_t idle_stop_s;  /* seconds after it was paused; 0: never */
	int64_t snapshots_mb; /* limit for one key, in 2^20 bytes; 0: no limit */
	int64_t keep_ended_s; /* seconds that ended sandboxes stay listed; 0: for ever */
	unsigned jobs;        /* engine calls at the same time */
	unsigned waiting;     /* requests that may wait for a sandbox at the same time */
	unsigned patience_s;  /* seconds that a request waits for a sandbox */
};

/* type of the event with the last output of a sandbox that died */
#define HR_FLEET_EVENT_LOGS "logs"

struct hr_fleet_job;
struct hr_fleet_place; /* defined in fleet_int.h */
struct hr_rest;
struct json_object;

/* The numbers since the start. */
struct hr_fleet_counts {
	uint64_t cold, warm, warm_failed, pooled, make_failed, resumed, paused, stopped, died,
	    routes, refused_quota, refused_room, idle_paused, evicted;
};

/* durations: how long a job waits for a thread, and how long each successful engine call takes */
enum hr_fleet_phase {
	HR_PHASE_QUEUE,
	HR_PHASE_CREATE, /* until the server answers */
	HR_PHASE_CLAIM,  /* a warm sandbox is handed to a client */
	HR_PHASE_PAUSE,
	HR_PHASE_RESUME,
	HR_PHASE_STOP,
	HR_PHASES
};
#define HR_FLEET_BUCKETS 13
struct hr_fleet_times {
	uint64_t buckets[HR_FLEET_BUCKETS], ms; /* counts per bucket, not cumulative */
};

/* the alerts for the operator (alerts.c) */
enum hr_fleet_alert {
	HR_ALERT_STORE,        /* the store cannot be written */
	HR_ALERT_ENGINE,       /* the engine fails repeatedly, or its watch has ended */
	HR_ALERT_ROOM,         /* a start was refused because there was no room */
	HR_ALERT_QUOTA,        /* a start was refused because the key's quota is used up */
	HR_ALERT_POOL_EMPTY,   /* a start found no sandbox in the pool */
	HR_ALERT_POOL_FAILING, /* the pool's sandboxes cannot be created */
};
#define HR_FLEET_ALERTS 16      /* maximum present alerts; further ones are only logged */
#define HR_FLEET_ALERTS_PAST 64 /* maximum changes that are listed */
struct hr_fleet_alerts {
	struct hr_fleet_alert_at {
		enum hr_fleet_alert what;
		char of[64]; /* name of the pool or key; "": none */
		char detail[300];
		int64_t at; /* seconds since 1970 when it began; in past[]: when it changed */
		bool firing;
	} now[HR_FLEET_ALERTS], past[HR_FLEET_ALERTS_PAST]; /* sorted, the oldest first */
	size_t now_n, past_n;
	uint64_t changes;
};

/* The figures at the end of each minute in which they changed (history.c), for an hour and one
 * entry before it. No timer runs: the first change after a minute records that minute. */
#define HR_FLEET_HISTORY 64
struct hr_fleet_history {
	struct hr_fleet_level {
		int64_t time; /* seconds since 1970 of the minute's start */
		int64_t states[HR_FLEET_STATES], factors, wanted;
	} v[HR_FLEET_HISTORY];
	size_t n;
	int64_t minute; /* start of the minute that is not yet in v */
};

struct hr_fleet {
	struct hr_fleet_settings set;
	struct hr_store *store;
	const struct hr_fleet_engine *engine;
	void *engine_self;
	pthread_mutex_t lock;
	/* signalled when a state changes, or any other fact that a stream of events reports */
	pthread_cond_t changed;
	pthread_cond_t work;  /* signalled when a job was added */
	pthread_cond_t clock; /* signalled when a sandbox can become idle */
	struct hr_fleet_job *jobs;
	unsigned waiting;
	struct hr_fleet_place *waiters, *turns; /* see turns.c */
	pthread_cond_t turned;
	struct hr_fleet_stream *streams; /* event streams, see events.c */
	bool leaving;                    /* another image of the service takes over */
	pid_t nginx;                     /* atomic; 0, -1: this process runs none */
	bool drained; /* nothing new is started; the store keeps a note of this, too */
	struct hr_fleet_pool *pools;
	bool setting_pools; /* true while a request sets the pools: only one may run at a time */
	unsigned pools_changed; /* number of changes of the pools */
	/* seconds of the monotonic clock; until then pools leave room to other starts */
	int64_t crowded_s;
	struct hr_fleet_counts counts;
	struct hr_fleet_times times[HR_PHASES];
	struct hr_fleet_alerts alerts;
	struct hr_fleet_history history;
	unsigned engine_failed; /* number of consecutive calls that failed */
};

/* A pool: sandboxes created in advance (pool.c). */
struct hr_fleet_pool {
	struct hr_fleet_pool *next;
	char name[64];
	char shape[HR_FLEET_SHAPE];
	char *request; /* JSON */
	int64_t factor, size;
	unsigned failed;      /* number of consecutive creates that failed */
	int64_t not_before_s; /* seconds of the monotonic clock before which nothing is created */
};

/* Initialises *f; store and engine stay the caller's. Reads the state that a predecessor left,
 * removes sandboxes that the store does not know, continues unfinished jobs, and starts the
 * threads, which end with the process. */
int hr_fleet_init(struct hr_fleet *f, const struct hr_fleet_settings *set, struct hr_store *store,
    const struct hr_fleet_engine *engine, void *engine_self, struct hr_err *err);

/* The time that a sandbox may run. */
struct hr_fleet_term {
	int64_t ms;    /* duration from now, or from the next start or resume; 0: the end is now */
	bool lengthen; /* a later end stays */
	bool pauses;   /* the end pauses the sandbox, and does not stop it */
};
/* Returns the session's live sandbox, resumed if it is paused, or a new one that is being started,
 * which has that term (NULL: no end).
 * As the calls below, it fills *row (HR_FLEET_OK, _CONFLICT), which needs hr_fleet_row_done(). */
enum hr_fleet_result hr_fleet_start(struct hr_fleet *f, const struct hr_fleet_key *k,
    const char *session, const char *request, int64_t factor, const char *shape,
    const struct hr_fleet_term *term, struct hr_fleet_row *row, struct hr_err *err);

/* Fills *row with the sandbox `id` of `key` (0: of any key), as it is in the store. */
enum hr_fleet_result hr_fleet_get(
    struct hr_fleet *f, int64_t key, const char *id, struct hr_fleet_row *row, struct hr_err *err);

/* Gives the sandbox `id` of `key` another term. HR_FLEET_CONFLICT: it has ended. */
enum hr_fleet_result hr_fleet_lease(struct hr_fleet *f, int64_t key, const char *id,
    const struct hr_fleet_term *term, struct hr_fleet_row *row, struct hr_err *err);

enum hr_fleet_change {
	HR_FLEET_STOP,
	HR_FLEET_PAUSE,
	HR_FLEET_PAUSE_FILES,
	HR_FLEET_RESUME,
	HR_FLEET_RESUME_NEW_KEY, /* resumes with a new session key; one that runs keeps its key */
};
/* Stops, pauses or resumes the sandbox `id` of `key` (0: of any key). Succeeds if the sandbox is
 * already in the state that `what` requests. */
enum hr_fleet_result hr_fleet_change(struct hr_fleet *f, int64_t key, const char *id,
    enum hr_fleet_change what, struct hr_fleet_row *row, struct hr_err *err);

/* Stops the sandbox `id` of `key` (0: of any key), and records `reason`. */
enum hr_fleet_result hr_fleet_stop_for(
    struct hr_fleet *f, int64_t key, const char *id, const char *reason, struct hr_err *err);

/* Waits until a sandbox that starts or resumes has settled in another state. */
enum hr_fleet_result
hr_fleet_wait(struct hr_fleet *f, const char *id, struct hr_fleet_row *row, struct hr_err *err);

/* Returns the row that says where a request for the sandbox goes. Resumes it if necessary, and
 * waits for that if `wait`. */
enum hr_fleet_result hr_fleet_route(
    struct hr_fleet *f, const char *id, bool wait, struct hr_fleet_row *row, struct hr_err *err);

/* Does the same for a request without the sandbox's key: it resumes nothing, waits for nothing, and
 * counts as no activity. HR_FLEET_CONFLICT, _LATE: the sandbox does not run. */
enum hr_fleet_result
hr_fleet_look(struct hr_fleet *f, const char *id, struct hr_fleet_row *row, struct hr_err *err);

/* Ends all waits and starts nothing more in this process. */
void hr_fleet_leave(struct hr_fleet *f);

/* Appends the HELP and TYPE lines that Prometheus expects before a metric's first sample; name
 * without "handrail_fleet_". */
void hr_fleet_put_head(struct hr_buf *b, const char *name, const char *type, const char *help);
/* Appends the durations as Prometheus histograms. */
void hr_fleet_put_times(const struct hr_fleet *f, struct hr_buf *b);

/* Appends the alerts as members of a JSON object; called with the lock. */
void hr_fleet_put_alerts(const struct hr_fleet *f, struct hr_buf *b);
int hr_fleet_put_history(struct hr_fleet *f, struct hr_buf *b, struct hr_err *err);

/* Stops starts (on), or allows them again, also in processes that start after this one. */
int hr_fleet_drain(struct hr_fleet *f, bool on, struct hr_err *err);

/* Replaces the pools in the store by a JSON array of {"name", "size", "request": body of a start,
 * without a session and an environment}. Fails with HR_E_INVAL, whose message names the fault. */
int hr_fleet_set_pools(struct hr_fleet *f, struct json_object *pools, struct hr_err *err);

/* Returns a connection for a request to a server at ADDR:PORT or unix:PATH of this machine, with 5
 * s in all, or NULL without memory. The caller frees it with hr_rest_free(). */
struct hr_rest *hr_fleet_asker(const char *at);
/* Returns when the sandbox was last used, in seconds since 1970: now, if a connection to it is open
 * on this machine; else the time that its server reports for its commands; -1 if there is none. */
int64_t hr_fleet_ask_active(const struct hr_fleet_row *row);
/* Appends the use of processor and memory that the sandbox reports about itself, as an object.
 * Returns 0, or -1 if it reports none. */
int hr_fleet_ask_usage(const struct hr_fleet_row *row, struct hr_buf *ret);
/* Appends the sandbox's address with `port`, as nginx connects to it; 0: the server at a Unix
 * socket, whose other ports are its /port/N/. With `counts` a connection keeps a sandbox with an
 * address from being idle; such an `at` has a port. */
void hr_fleet_put_way(struct hr_buf *b, const char *at, int port, bool counts);
/* Returns true if a server still has its stream socket at that path. Opens no connection. */
bool hr_fleet_listens(const char *path);

#endif
