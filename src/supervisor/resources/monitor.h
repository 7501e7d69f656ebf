/* hr_monitor: memory, processes, pressure and disk of the sandbox, as far as the kernel tells when
 * they run short. Nothing is polled: between two events it sleeps. */
#ifndef HR_SUPERVISOR_RESOURCES_MONITOR_H
#define HR_SUPERVISOR_RESOURCES_MONITOR_H

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
	HR_MONITOR_COUNTERS, /* inotify: a counter changes */
	HR_MONITOR_PRESSURE, /* epoll around a pressure file */
};

/* A descriptor that the kernel makes readable. */
struct hr_monitor_source {
	struct hr_monitor *of;
	enum hr_monitor_what what;
	int fd, file; /* file: the pressure file; -1: none */
	enum hr_alert_kind kind;
	uint64_t threshold;     /* percent of pressure */
	struct hr_watch *watch; /* NULL: until the pause is over */
	/* of pressure, from the kernel's word on */
	struct hr_watch *measure;
	bool measuring;
	uint64_t total;   /* at its beginning, microseconds */
	int64_t since_ms; /* when that was */
};

struct hr_monitor {
	struct hr_loop *loop;
	struct hr_alerts *alerts;
	const struct hr_settings *settings;
	const struct hr_cgroup *groups;
	const char *proc; /* "/proc" but in tests */
	struct hr_monitor_source sources[HR_MONITOR_SOURCES];
	unsigned n;
	struct hr_watch *pause;      /* armed by an event; at its end all is watched again */
	int inotify;                 /* of the source; -1: none */
	uint64_t oom_kills, refused; /* counted so far */
	bool counting;
};

void hr_monitor_init(struct hr_monitor *m);
/* All that is given is borrowed until hr_monitor_close(), the groups are the same each time: what
 * happened while it was closed is told. missing: what was asked for and is not watched, with the
 * reasons; "" if there is nothing. */
void hr_monitor_open(struct hr_monitor *m, struct hr_loop *loop, struct hr_alerts *alerts,
    const struct hr_settings *settings, const struct hr_cgroup *groups, const char *proc,
    struct hr_buf *missing);
void hr_monitor_close(struct hr_monitor *m);

/* Looks at memory, processes and the actions of the last minutes now: of a level the kernel does
 * not tell, and control groups of version 1 tell of nothing. */
void hr_monitor_look(struct hr_monitor *m);

/* So many percent of the working directory's disk are in use. Nothing here looks itself: that may
 * hang. */
void hr_monitor_disk(struct hr_monitor *m, unsigned percent);

#endif
