/* hr_monitor: memory, processes, pressure and disk of the sandbox, as far as the kernel tells when
 * they run short. Nothing is polled: between two events it sleeps. */
#ifndef HR_SUPERVISOR_MONITOR_H
#define HR_SUPERVISOR_MONITOR_H

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

#define HR_MONITOR_SOURCES 5

/* A descriptor that the kernel makes readable: an eventfd, or an epoll around a pressure file. */
struct hr_monitor_source {
	struct hr_monitor *of;
	int fd, file; /* file: the pressure file; -1: none */
	enum hr_alert_kind kind;
	uint64_t threshold; /* percent of pressure, bytes of memory */
	uint64_t at;        /* bytes that the kernel compares; 0: it is no level */
	struct hr_watch *watch;
};

struct hr_monitor {
	struct hr_loop *loop;
	struct hr_alerts *alerts;
	const struct hr_settings *settings;
	const struct hr_cgroup *groups;
	const char *proc; /* "/proc" but in tests */
	struct hr_monitor_source sources[HR_MONITOR_SOURCES];
	unsigned n;
	int inotify; /* of the counters; -1: none */
	struct hr_watch *inotify_watch;
	uint64_t oom_kills, refused; /* counted so far */
};

void hr_monitor_init(struct hr_monitor *m);
/* All that is given is borrowed until hr_monitor_close(). missing: what was asked for and is not
 * watched, with the reasons; "" if there is nothing. */
void hr_monitor_open(struct hr_monitor *m, struct hr_loop *loop, struct hr_alerts *alerts,
    const struct hr_settings *settings, const struct hr_cgroup *groups, const char *proc,
    struct hr_buf *missing);
void hr_monitor_close(struct hr_monitor *m);

/* Looks at all of it now: of the disk no kernel tells, and of processes only control groups of
 * version 2 do. */
void hr_monitor_look(struct hr_monitor *m);

#endif
