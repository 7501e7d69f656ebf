/* hr_service: keeps a process running: start, readiness, end, restart. One engine serves keepers,
 * plugins, nginx, and pools, which have several processes; hr_service_ops has the differences.
 * Owners read `state`, but change it only by the setters below: a change that is not in their table
 * is a bug. */
#ifndef HR_SUPERVISOR_CHILDREN_SERVICE_H
#define HR_SUPERVISOR_CHILDREN_SERVICE_H

#include <stdbool.h>

#include "base/err.h"
#include "supervisor/children/child.h"
#include "supervisor/children/readyline.h"

struct hr_watch;

/* The numbers are those of hr_plugin_states (proto/metrics.h). */
enum hr_service_state {
	HR_SERVICE_OFF,         /* the service is not requested yet */
	HR_SERVICE_WAITING,     /* the service waits for others; nginx: it runs, but is held */
	HR_SERVICE_STARTING,    /* the process runs and is not known to be ready */
	HR_SERVICE_READY,       /* the service is ready, or needs no process */
	HR_SERVICE_DOWN,        /* the process has ended and restarts after its delay */
	HR_SERVICE_FAILED,      /* the process did not start, and is retried after its delay */
	HR_SERVICE_UNAVAILABLE, /* final state: something is missing */
	HR_SERVICE_STOPPING,
	HR_SERVICE_STOPPED,
};

struct hr_service;

struct hr_service_ops {
	/* Starts the child; `ready` is for its readiness line, -1 if it has none. */
	int (*spawn)(struct hr_service *s, int ready, struct hr_err *err);
	/* Called by hr_service_set(). Must not free the service except in STOPPED. */
	void (*changed)(struct hr_service *s);
	void (*ready)(struct hr_service *s); /* called before the change to READY; or NULL */
	/* Called when the process has ended, in any state. how is NULL for a process that was not a
	 * child of this process. May be NULL. */
	void (*ended)(struct hr_service *s, const struct hr_exit *how);
	/* Called when the process has ended without a stop: calls hr_service_down(), or sets a
	 * final state. */
	void (*lost)(
	    struct hr_service *s, const struct hr_exit *how, bool worked, int64_t delay_ms);
	void (*again)(struct hr_service *s); /* called in DOWN or FAILED when the delay is over */
	/* Signals a process that is not `child`; may be NULL. */
	void (*signal)(struct hr_service *s, int sig);
	bool says_ready; /* the process prints a line, see readyline.h */
	bool leads;      /* the process leads a group, which is killed as a whole */
};

struct hr_service {
	const struct hr_service_ops *ops;
	void *owner;
	struct hr_child child;
	enum hr_service_state state;
	char reason[240]; /* reason of the last failure; "": none */
	bool elsewhere;   /* the process is not `child`: a predecessor's, or a pool's workers */
	bool never;       /* the process reported that a restart would not help */
	struct hr_readyline line;
	struct hr_backoff backoff;
	struct hr_watch *restart, *patience;
	int64_t patience_ms;
};

/* Initialises s; the owner sets the child's name. */
void hr_service_init(
    struct hr_service *s, const struct hr_service_ops *ops, void *owner, struct hr_children *kids);
/* Opens the service; requires the loop. */
int hr_service_open(struct hr_service *s, struct hr_err *err);
void hr_service_done(struct hr_service *s);

void hr_service_set(struct hr_service *s, enum hr_service_state state);
/* Changes the state without calling ops->changed, for a caller that handles the change itself. */
void hr_service_move(struct hr_service *s, enum hr_service_state state);
void hr_service_because(struct hr_service *s, const char *why); /* Sets the reason. */

/* Starts the process, and sets STARTING; kills it if it is not ready in time. Returns -1 if the
 * state is unchanged. */
int hr_service_start(struct hr_service *s, int64_t patience_ms, struct hr_err *err);
void hr_service_ready(struct hr_service *s); /* Sets READY if there is no readiness line. */
/* Sets DOWN or FAILED, and calls ops->again after the delay. */
void hr_service_down(struct hr_service *s, enum hr_service_state state, int64_t delay_ms);
/* Retries later if ops->again could not start it. */
void hr_service_retry(struct hr_service *s, const struct hr_err *why);
/* Handles the end of a process that was not a child. */
void hr_service_ended(struct hr_service *s);
/* Sends the signal, and after patience_ms (unless 0) SIGKILL. The state becomes STOPPED, at once if
 * there is no process; ops->changed is called only if that comes later. */
void hr_service_stop(struct hr_service *s, int sig, int64_t patience_ms);
bool hr_service_runs(const struct hr_service *s);
/* Returns true if the service is stopping or stopped. */
bool hr_service_ends(const struct hr_service *s);
/* Returns true if the process ends right after each start. */
bool hr_service_failing(const struct hr_service *s);
/* Returns the delay until the next start. how NULL: the process was not a child. */
int64_t hr_service_delay(struct hr_service *s, bool worked, const struct hr_exit *how);

/* Returns "ready", "starting", "restarting" or "stopping". */
const char *hr_service_state_text(const struct hr_service *s);

#endif
