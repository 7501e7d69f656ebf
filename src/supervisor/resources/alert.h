/* hr_alerts: reports problems with the sandbox's resources, once when they begin and once when they
 * end: in the log, in /metrics and /ready, and to the administrator's command. An alert never stops
 * anything. */
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
	struct hr_watch *clear; /* timer that ends the alert */
	bool firing, clearing;  /* clearing: the timer is armed */
	bool untold;            /* the last change was not reported to the command */
	uint64_t value, threshold;
	int64_t since_ns; /* CLOCK_REALTIME of the last change */
};

struct hr_alert_change {
	unsigned kind;
	bool firing;
	uint64_t value, threshold;
	int64_t at_ns; /* CLOCK_REALTIME of the change */
};

#define HR_ALERTS_PAST 16 /* as many as fit into an answer of the channel */

struct hr_alerts {
	const struct hr_settings *settings;
	struct hr_metrics *metrics;
	char *const *envp; /* environment of the command */
	struct hr_alert v[HR_ALERTS];
	struct hr_child command; /* only one command runs at a time */
	struct hr_watch *patience;
	struct hr_watch *retry; /* armed after a failed start */
	int64_t retry_ms;       /* delay of the retry; 0: the last start worked */
	struct hr_alert_change past[HR_ALERTS_PAST]; /* a ring of the last changes */
	unsigned changes;
	bool open, held;
};

/* Initialises a; all arguments are borrowed until hr_alerts_close(). kids must have a loop. */
int hr_alerts_open(struct hr_alerts *a, struct hr_loop *loop, struct hr_children *kids,
    const struct hr_settings *settings, struct hr_metrics *metrics, char *const *envp,
    struct hr_err *err);
/* Kills a running command, which is reaped like any child. Has no effect if not open. */
void hr_alerts_close(struct hr_alerts *a);

/* Holds the command back: with `on` a running one continues; without, the changes since are
 * reported. */
void hr_alerts_hold(struct hr_alerts *a, bool on);

/* Reports an event. The alert ends alert_clear_seconds after the last one. */
void
hr_alert_event(struct hr_alerts *a, enum hr_alert_kind kind, uint64_t value, uint64_t threshold);
/* Reports a level. The alert ends after alert_clear_seconds below the threshold; threshold 0 turns
 * it off. */
void
hr_alert_level(struct hr_alerts *a, enum hr_alert_kind kind, uint64_t value, uint64_t threshold);

/* Appends a JSON array of the active alerts. */
void hr_alerts_json(struct hr_buf *b, const struct hr_alerts *a);
/* Appends the active alerts and the last changes, oldest first. */
void hr_alerts_history(struct hr_buf *b, const struct hr_alerts *a);

#endif
