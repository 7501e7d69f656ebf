/* hr_service: a process that is to run: its start, its word that it is ready, its end, the next
 * start. One engine for keepers, plugins, nginx and pools, which have several processes; what is
 * theirs alone is in hr_service_ops.
 *
 * Owners read `state` and write it by the setters below alone: a change that is not in their table
 * is a mistake of ours. */
#ifndef HR_SUPERVISOR_CHILDREN_SERVICE_H
#define HR_SUPERVISOR_CHILDREN_SERVICE_H

#include <stdbool.h>

#include "base/err.h"
#include "supervisor/children/child.h"
#include "supervisor/children/readyline.h"

struct hr_watch;

/* Their numbers are those of hr_plugin_states (proto/metrics.h). */
enum hr_service_state {
	HR_SERVICE_OFF,         /* not asked for yet */
	HR_SERVICE_WAITING,     /* for others; of nginx: it runs, and is held */
	HR_SERVICE_STARTING,    /* runs, is not known to be ready */
	HR_SERVICE_READY,       /* also: there is no process to it */
	HR_SERVICE_DOWN,        /* ended; starts again when its time has come */
	HR_SERVICE_FAILED,      /* did not start; the same */
	HR_SERVICE_UNAVAILABLE, /* for good: something is missing */
	HR_SERVICE_STOPPING,
	HR_SERVICE_STOPPED,
};

struct hr_service;

struct hr_service_ops {
	/* Starts the child; `ready` is for its readiness line, -1 where it says none. */
	int (*spawn)(struct hr_service *s, int ready, struct hr_err *err);
	/* By hr_service_set(). Must not free it but in STOPPED. */
	void (*changed)(struct hr_service *s);
	void (*ready)(struct hr_service *s); /* it has said so; before the change. May be NULL */
	/* Its process has ended, in whatever state. how is NULL for one that was not our child. May
	 * be NULL. */
	void (*ended)(struct hr_service *s, const struct hr_exit *how);
	/* ... unasked: calls hr_service_down(), or sets a state that lasts. */
	void (*lost)(
	    struct hr_service *s, const struct hr_exit *how, bool worked, int64_t delay_ms);
	void (*again)(struct hr_service *s); /* from DOWN or FAILED: its time has come */
	/* To a process that is not `child`; may be NULL. */
	void (*signal)(struct hr_service *s, int sig);
	bool says_ready; /* by a line, see readyline.h */
	bool leads;      /* a group, all of which is killed */
};

struct hr_service {
	const struct hr_service_ops *ops;
	void *owner;
	struct hr_child child;
	enum hr_service_state state;
	char reason[240]; /* of the last failure, "" if none */
	bool elsewhere; /* its process is not `child`: a predecessor's, or the workers of a pool */
	bool never;     /* it has said that another start would be for nothing */
	struct hr_readyline line;
	struct hr_backoff backoff;
	struct hr_watch *restart, *patience;
	int64_t patience_ms;
};

/* The child's name is the owner's to fill. */
void hr_service_init(
    struct hr_service *s, const struct hr_service_ops *ops, void *owner, struct hr_children *kids);
int hr_service_open(struct hr_service *s, struct hr_err *err); /* once there is a loop */
void hr_service_done(struct hr_service *s);

void hr_service_set(struct hr_service *s, enum hr_service_state state);
/* For one who looks at what follows himself: ops->changed is not called. */
void hr_service_move(struct hr_service *s, enum hr_service_state state);
void hr_service_because(struct hr_service *s, const char *why); /* the reason */

/* Ends in STARTING; where it is not ready in time it is killed. -1: nothing has changed. */
int hr_service_start(struct hr_service *s, int64_t patience_ms, struct hr_err *err);
void hr_service_ready(struct hr_service *s); /* where the child does not say so itself */
/* DOWN or FAILED, and ops->again after the delay. */
void hr_service_down(struct hr_service *s, enum hr_service_state state, int64_t delay_ms);
/* ops->again could not start it: it is called once more, later. */
void hr_service_retry(struct hr_service *s, const struct hr_err *why);
void hr_service_ended(struct hr_service *s); /* one that was not our child */
/* By the signal; after patience_ms, if not 0, by SIGKILL. Ends in STOPPED, at once where no process
 * is; ops->changed hears of it only if that comes later. */
void hr_service_stop(struct hr_service *s, int sig, int64_t patience_ms);
bool hr_service_runs(const struct hr_service *s);
bool hr_service_ends(const struct hr_service *s);    /* it was told to, or has */
bool hr_service_failing(const struct hr_service *s); /* it ends as soon as it starts */
/* Until the next start, after this end. how: NULL: of nobody's child. */
int64_t hr_service_delay(struct hr_service *s, bool worked, const struct hr_exit *how);

/* "ready", "starting", "restarting" or "stopping". */
const char *hr_service_state_text(const struct hr_service *s);

#endif
