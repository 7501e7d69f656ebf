/* hr_metrics: event counters since the start of the server, on the scoreboard. Each process adds to
 * the counters of its own events; they never decrease. They survive every worker, and end with the
 * supervisor. */
#ifndef HR_PROTO_METRICS_H
#define HR_PROTO_METRICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/frame.h"

#define HR_METRICS_ACTIONS 32 /* at least hr_action_classes_n */
#define HR_METRICS_BUCKETS 16 /* at least the histogram's bounds plus one */
/* number of exit codes that are counted: 0 to 255, and all others together */
#define HR_METRICS_EXITS 257

enum hr_restart { HR_RESTART_WORKER, HR_RESTART_SESSION, HR_RESTART_NGINX, HR_RESTARTS };

#define HR_METRICS_MINUTES 5  /* the window of hr_metrics_recent() */
#define HR_METRICS_HOUR 64    /* retained minutes, in a ring */
#define HR_METRICS_PLUGINS 16 /* maximum of counted plugins; further ones are not counted */
#define HR_METRICS_NAME 64

/* "ready", ..., indexed by the state below; NULL-terminated. */
extern const char *const hr_plugin_states[];

/* Problems of the sandbox's resources. */
enum hr_alert_kind {
	HR_ALERT_MEM_HIGH,
	HR_ALERT_MEM_CRITICAL,
	HR_ALERT_OOM_KILL,
	HR_ALERT_PIDS_MAX,
	HR_ALERT_MEM_PRESSURE,
	HR_ALERT_CPU_PRESSURE,
	HR_ALERT_DISK_HIGH,
	HR_ALERT_ERROR_RATE,
	HR_ALERTS,
};

extern const char *const hr_alert_names[HR_ALERTS];

struct hr_alert_metrics {
	_Atomic uint32_t firing; /* written by the supervisor */
	_Atomic uint64_t total;  /* written by the supervisor: how often it started */
};

struct hr_plugin_metrics {
	char name[HR_METRICS_NAME]; /* written by the supervisor before workers exist; "": unused */
	_Atomic uint32_t state;     /* written by the supervisor: index into hr_plugin_states */
	_Atomic int32_t pid;        /* written by the supervisor; 0: the plugin has no process */
	/* written by the supervisor: unexpected ends of the plugin's process */
	_Atomic uint64_t ends;
	/* written by workers: actions performed, and those not answered with 200 */
	_Atomic uint64_t actions, failed;
};

struct hr_action_metrics {
	/* answers: an observation, an error observation, a status other than 200 */
	_Atomic uint64_t ok, errors, failed;
	_Atomic uint64_t microseconds;
	_Atomic uint64_t buckets[HR_METRICS_BUCKETS]; /* counts per bucket, not cumulative */
};

/* The answers of one minute. No process writes in idle minutes. */
struct hr_metrics_minute {
	/* minute of CLOCK_MONOTONIC plus one; the figures are old if it is another minute */
	_Atomic uint64_t minute;
	_Atomic uint64_t actions, errors, microseconds, output_bytes;
};

struct hr_metrics {
	struct hr_action_metrics actions[HR_METRICS_ACTIONS]; /* indexed as hr_action_classes */
	_Atomic uint64_t exits[HR_METRICS_EXITS];
	_Atomic uint64_t clocks[HR_CLOCKS];
	_Atomic uint64_t still_running; /* answers about a command that still runs */
	_Atomic uint64_t output_bytes;
	struct hr_plugin_metrics plugins[HR_METRICS_PLUGINS];
	_Atomic uint64_t answers[6];            /* indexed by the first digit of the status */
	_Atomic uint64_t restarts[HR_RESTARTS]; /* written by the supervisor */
	struct hr_alert_metrics alerts[HR_ALERTS];
	/* written by workers: see hr_metrics_recent() */
	_Atomic uint64_t recent[HR_METRICS_MINUTES];
	/* written by workers: a ring of minutes */
	struct hr_metrics_minute minutes[HR_METRICS_HOUR];
};

/* Counts the answer to an action; `error`: an error observation, or a status other than 200.
 * now_ns: CLOCK_MONOTONIC. */
void hr_metrics_recent_add(struct hr_metrics *m, int64_t now_ns, bool error);
/* Does the same for hr_metrics_put_minutes(). When two answers race to open a minute one may be
 * lost. */
void hr_metrics_minute_add(
    struct hr_metrics *m, int64_t now_ns, bool error, uint64_t us, uint64_t output_bytes);
/* Appends the last hour, oldest first, as JSON: [[time, actions, errors, seconds, bytes], ...], for
 * minutes with answers. now_ns and now_s: the same time by both clocks. */
struct hr_buf;
void
hr_metrics_put_minutes(struct hr_buf *b, const struct hr_metrics *m, int64_t now_ns, int64_t now_s);
/* Sums this minute and the four before. */
void hr_metrics_recent(
    const struct hr_metrics *m, int64_t now_ns, unsigned *ret_all, unsigned *ret_errors);

#endif
