/* hr_monitor: watches the sandbox's memory, processes, pressure and disk as far as the kernel
 * reports shortages. Nothing is polled: between events the process sleeps. */
#ifndef HR_SUPERVISOR_RESOURCES_MONITOR_H
#define HR_SUPERVISOR_RESOURCES_MONITOR_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "proto/metrics.h"

struct hr_alerts;
struct hr_cgroup;
struct hr_loop;
struct hr_monitor;
struct hr_settings;
struct hr_watch;

#define HR_MONITOR_SOURCES 3

enum hr_monitor_what {
	HR_MONITOR_COUNTERS, /* inotify reports that a counter changed */
	HR_MONITOR_PRESSURE, /* an epoll around a pressure file reports it */
};

/* A descriptor that the kernel makes readable. */
struct hr_monitor_source {
	struct hr_monitor *of;
	enum hr_monitor_what what;
	int fd, file; /* file: the pressure file; -1: none */
	enum hr_alert_kind kind;
	uint64_t threshold;     /* percent of pressure */
	struct hr_watch *watch; /* NULL: none during the pause */
	/* ---- measurement of pressure, after a trigger ---- */
	struct hr_watch *measure;
	bool measuring;
	uint64_t total;   /* total microseconds at the start */
	int64_t since_ms; /* start of the window */
};

struct hr_monitor {
	struct hr_loop *loop;
	struct hr_alerts *alerts;
	const struct hr_settings *settings;
	const struct hr_cgroup *groups;
	const char *proc; /* "/proc", but another directory in tests */
	struct hr_monitor_source sources[HR_MONITOR_SOURCES];
	unsigned n;
	struct hr_watch *pause;      /* armed by an event; when it fires all are watched again */
	int inotify;                 /* inotify's descriptor; -1: none */
	uint64_t oom_kills, refused; /* counts when last read */
	bool counting;
	pthread_t closer; /* closes the pressure files */
	bool closing;     /* `closer` was started */
};

void hr_monitor_init(struct hr_monitor *m);
/* Starts to watch. All arguments are borrowed until hr_monitor_close(); the groups must stay the
 * same: events while it was closed are reported. `missing` gets the requested values that cannot be
 * watched, with reasons, or "" if all can. */
void hr_monitor_open(struct hr_monitor *m, struct hr_loop *loop, struct hr_alerts *alerts,
    const struct hr_settings *settings, const struct hr_cgroup *groups, const char *proc,
    struct hr_buf *missing);
/* Stops watching, and closes the pressure files in a thread, since the kernel takes about 10 ms
 * for each. hr_monitor_close() waits for the thread. */
void hr_monitor_stop(struct hr_monitor *m);
void hr_monitor_close(struct hr_monitor *m);

/* Checks memory, processes and the recent actions now: the kernel reports no levels, and version 1
 * reports nothing. */
void hr_monitor_look(struct hr_monitor *m);

/* Reports the used percentage of the working directory's disk. The caller measures it, since that
 * may block. */
void hr_monitor_disk(struct hr_monitor *m, unsigned percent);

#endif
