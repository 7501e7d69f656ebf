/* hr_alerts: what is wrong with the sandbox's resources: told once when it begins and once when it
 * is over, to the log, to /metrics and /ready, and to a command of the operator's. An alert never
 * stops anything. */
#ifndef HR_SUPERVISOR_RESOURCES_ALERT_H
#define HR_SUPERVISOR_RESOURCES_ALERT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "proto/metrics.h"
#include "supervisor/children/child.h"

struct hr_alerts;
struct hr_loop;
struct hr_settings;
struct hr_watch;

struct hr_alert {
	struct hr_alerts *of;
	struct hr_watch *clear; /* it is over when this fires */
	bool firing, clearing;  /* clearing: the timer is armed */
	bool untold;            /* the command has not been told of its last change */
	uint64_t value, threshold;
	int64_t since_ns; /* CLOCK_REALTIME of the last change */
};

struct hr_alert_change {
	unsigned kind;
	bool firing;
	uint64_t value, threshold;
	int64_t at_ns; /* CLOCK_REALTIME */
};

#define HR_ALERTS_PAST 16 /* what fits into an answer of the channel */

struct hr_alerts {
	const struct hr_settings *settings;
	struct hr_metrics *metrics;
	char *const *envp; /* of the command */
	struct hr_alert v[HR_ALERTS];
	struct hr_child command; /* one at a time */
	struct hr_watch *patience;
	struct hr_watch *retry; /* armed: it could not be started */
	int64_t retry_ms;       /* how long that waits; 0: the last start worked */
	struct hr_alert_change past[HR_ALERTS_PAST]; /* the last of `changes`, in turn */
	unsigned changes;
	bool open, held;
};

/* What is given is borrowed until hr_alerts_close(). kids must have a loop. */
int hr_alerts_open(struct hr_alerts *a, struct hr_loop *loop, struct hr_children *kids,
    const struct hr_settings *settings, struct hr_metrics *metrics, char *const *envp,
    struct hr_err *err);
/* A command that still runs is killed; it is reaped like any child. Not open: nothing. */
void hr_alerts_close(struct hr_alerts *a);

/* While on no command is started; one that runs goes on. Off: what changed meanwhile is told. */
void hr_alerts_hold(struct hr_alerts *a, bool on);

/* It has happened (again). Over after alert_clear_seconds in which it did not. */
void
hr_alert_event(struct hr_alerts *a, enum hr_alert_kind kind, uint64_t value, uint64_t threshold);
/* So much there is now. Over after alert_clear_seconds below the threshold, which 0 turns off. */
void
hr_alert_level(struct hr_alerts *a, enum hr_alert_kind kind, uint64_t value, uint64_t threshold);

/* A JSON array of those that hold. */
void hr_alerts_json(struct hr_buf *b, const struct hr_alerts *a);
/* The same and the last changes, the oldest first. */
void hr_alerts_history(struct hr_buf *b, const struct hr_alerts *a);

#endif
