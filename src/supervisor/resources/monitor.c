/* Watches events of the kernel: pressure triggers, and counter files that change. Both exist in
 * version 2 of control groups only; with version 1 the values are read on request. */
#include "config.h"

#include "supervisor/resources/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/loop.h"
#include "base/path.h"
#include "supervisor/resources/alert.h"
#include "supervisor/run/cgroup.h"
#include "supervisor/settings/settings.h"
#include "supervisor/resources/usage.h"

#define PAUSE_MS 1000
#define ACTIONS_LEAST 4
#define WINDOW_MS 2000 /* the kernel permits multiples of this to every user */

/* ---- present levels ---- */

static void
look_at_memory(struct hr_monitor *m)
{
	const struct hr_settings *c = m->settings;
	uint64_t percent, use, limit = hr_settings_memory(c);

	if (limit == 0 || !hr_usage_memory(m->groups, &use))
		return;
	percent = use / (limit / 100);
	hr_alert_level(
	    m->alerts, HR_ALERT_MEM_CRITICAL, percent, (uint64_t)c->alert_memory_critical);
	hr_alert_level(m->alerts, HR_ALERT_MEM_HIGH, percent, (uint64_t)c->alert_memory);
}

static void
count(struct hr_monitor *m, const char *file, const char *key, enum hr_alert_kind kind,
    uint64_t *known)
{
	const char *dir = hr_usage_group(m->groups, file);
	uint64_t now;

	if (dir == NULL || !hr_usage_number(dir, file, key, &now) || now <= *known)
		return;
	*known = now;
	hr_alert_event(m->alerts, kind, now, 1);
}

static void
look_at_counters(struct hr_monitor *m)
{
	count(m, "memory.events", "oom_kill", HR_ALERT_OOM_KILL, &m->oom_kills);
	count(m, "memory.oom_control", "oom_kill", HR_ALERT_OOM_KILL, &m->oom_kills);
	count(m, "pids.events", "max", HR_ALERT_PIDS_MAX, &m->refused);
}

/* Reports the error rate, which means nothing for very few actions. */
static void
look_at_actions(struct hr_monitor *m)
{
	unsigned all, errors;

	hr_metrics_recent(m->alerts->metrics, hr_now_ms() * 1000000, &all, &errors);
	hr_alert_level(m->alerts, HR_ALERT_ERROR_RATE,
	    all >= ACTIONS_LEAST ? errors * 100 / all : 0, (uint64_t)m->settings->alert_errors);
}

void
hr_monitor_look(struct hr_monitor *m)
{
	if (m->alerts == NULL)
		return;
	look_at_actions(m);
	look_at_memory(m);
	look_at_counters(m);
}

void
hr_monitor_disk(struct hr_monitor *m, unsigned percent)
{
	if (m->alerts != NULL)
		hr_alert_level(
		    m->alerts, HR_ALERT_DISK_HIGH, percent, (uint64_t)m->settings->alert_disk);
}

/* ---- events ---- */

/* Returns true if something has happened. The kernel reports pressure once to the inner epoll and
 * then forgets it: the outer one may be stale. */
static bool
source_take(const struct hr_monitor_source *s)
{
	struct epoll_event e;
	char trash[4096];
	bool any = false;

	if (s->what == HR_MONITOR_PRESSURE) {
		(void)epoll_wait(s->fd, &e, 1, 0);
		return true;
	}
	while (hr_fd_read(s->fd, trash, sizeof(trash)) > 0)
		any = true;
	return any;
}

/* Reads the microseconds in which a task waited, since the start of the machine or group. */
static bool
pressure_total(int file, uint64_t *ret)
{
	static const char key[] = " total=";
	char text[256], *at, *end;
	ssize_t n;

	do
		n = pread(file, text, sizeof(text) - 1, 0);
	while (n < 0 && errno == EINTR);
	text[n > 0 ? n : 0] = '\0';
	at = strncmp(text, "some ", 5) == 0 ? strstr(text, key) : NULL;
	if (at == NULL)
		return false;
	errno = 0;
	*ret = strtoull(at + sizeof(key) - 1, &end, 10);
	return errno == 0 && *end == '\n';
}

static void
measured(struct hr_monitor_source *s, uint64_t percent)
{
	hr_alert_level(s->of->alerts, s->kind, percent < 100 ? percent : 100, s->threshold);
}

/* Returns true if an event has no pressure behind it since the last reading. For a process without
 * CAP_SYS_RESOURCE the first window of a trigger counts all time since the start of the machine, so
 * that the first stall of a microsecond is an event. */
static bool
is_of_the_past(const struct hr_monitor_source *s)
{
	uint64_t total;

	return pressure_total(s->file, &total) && total - s->total < s->threshold * WINDOW_MS * 10;
}

/* Starts to measure, window after window, until the pressure is below the threshold. */
static void
measure_begin(struct hr_monitor_source *s)
{
	if (s->measuring)
		return;
	s->since_ms = hr_now_ms();
	s->measuring =
	    pressure_total(s->file, &s->total) && hr_watch_arm(s->measure, WINDOW_MS, NULL) == 0;
	if (!s->measuring)
		measured(s, 0); /* there are no data */
}

static void
measure_end(void *arg)
{
	struct hr_monitor_source *s = arg;
	int64_t ms = hr_now_ms() - s->since_ms;
	uint64_t total, percent = 0;

	s->measuring = false;
	if (ms > 0 && pressure_total(s->file, &total) && total > s->total)
		percent = (total - s->total) / 10 / (uint64_t)ms;
	measured(s, percent);
	if (percent >= s->threshold)
		measure_begin(s);
}

/* Handles an event. A group at its limit changes its counters a hundred times a second: after one
 * event the next is read a second later. The kernel limits the rate of pressure events itself. */
static void
source_ready(void *arg)
{
	struct hr_monitor_source *s = arg;
	struct hr_monitor *m = s->of;

	if (!source_take(s))
		return;
	if (s->what == HR_MONITOR_PRESSURE && is_of_the_past(s))
		return;
	if (s->what == HR_MONITOR_PRESSURE)
		measure_begin(s);
	else
		look_at_counters(m);
	look_at_memory(m);
	if (s->what == HR_MONITOR_PRESSURE || hr_watch_arm(m->pause, PAUSE_MS, NULL) != 0)
		return;
	hr_watch_drop(&s->watch);
}

static void
pause_over(void *arg)
{
	struct hr_monitor *m = arg;
	bool all = true;
	unsigned i;

	for (i = 0; i < m->n; i++) {
		struct hr_monitor_source *s = &m->sources[i];

		if (s->watch == NULL)
			s->watch = hr_loop_readable(m->loop, s->fd, source_ready, s, NULL);
		all = all && s->watch != NULL;
	}
	if (!all)
		(void)hr_watch_arm(m->pause, PAUSE_MS, NULL);
	look_at_counters(m);
	look_at_memory(m);
}

/* ---- setting up ---- */

static void
lacks(struct hr_buf *missing, const char *what, const char *why)
{
	hr_buf_addf(missing, "%s%s (%s)", missing->len > 0 ? ", " : "", what, why);
}

/* Adds a source. Takes ownership of both descriptors, also on failure. */
static int
source_add(struct hr_monitor *m, enum hr_monitor_what what, int fd, int file,
    enum hr_alert_kind kind, uint64_t threshold, struct hr_err *err)
{
	struct hr_monitor_source *s = &m->sources[m->n];

	hr_assert(m->n < HR_MONITOR_SOURCES);
	*s = (struct hr_monitor_source){
	    .of = m, .what = what, .fd = fd, .file = file, .kind = kind, .threshold = threshold};
	if (what == HR_MONITOR_PRESSURE)
		s->measure = hr_loop_timer(m->loop, measure_end, s, err);
	if (what == HR_MONITOR_PRESSURE)
		(void)pressure_total(file, &s->total);
	if (what != HR_MONITOR_PRESSURE || s->measure != NULL)
		s->watch = hr_loop_readable(m->loop, fd, source_ready, s, err);
	if (s->watch != NULL) {
		m->n++;
		return 0;
	}
	hr_watch_free(s->measure);
	hr_fd_close(&s->fd);
	hr_fd_close(&s->file);
	return -1;
}

/* Opens an epoll around a pressure file: libevent does not know EPOLLPRI, and such a file is always
 * "readable"; an epoll around it is not. */
static int
pressure_watch(struct hr_monitor *m, const char *path, long long percent, enum hr_alert_kind kind,
    struct hr_err *err)
{
	struct epoll_event e = {.events = EPOLLPRI};
	char text[64];
	int len = snprintf(
	    text, sizeof(text), "some %lld %d", percent * WINDOW_MS * 10, WINDOW_MS * 1000);
	int file = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC), ep = -1;

	/* includes the NUL, which the kernel overwrites with its own */
	if (file < 0 || write(file, text, (size_t)len + 1) < 0)
		(void)hr_err_sys(err, errno, "%s", path);
	else if ((ep = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
		 epoll_ctl(ep, EPOLL_CTL_ADD, file, &e) != 0)
		(void)hr_err_sys(err, errno, "epoll for %s", path);
	else
		return source_add(m, HR_MONITOR_PRESSURE, ep, file, kind, (uint64_t)percent, err);
	hr_fd_close(&ep);
	hr_fd_close(&file);
	return -1;
}

/* Watches the commands' own group (version 2), or else the whole machine. */
static void
pressure_open(struct hr_monitor *m, const char *resource, long long percent,
    enum hr_alert_kind kind, struct hr_buf *missing)
{
	struct hr_err err = {0};
	char file[32];
	HR_FREE char *path = NULL;
	const char *dir;

	if (percent == 0) {
		/* the alert is perhaps active by the old settings */
		hr_alert_level(m->alerts, kind, 0, 0);
		return;
	}
	(void)snprintf(file, sizeof(file), "%s.pressure", resource);
	dir = hr_usage_group(m->groups, file);
	if (dir == NULL) {
		(void)snprintf(file, sizeof(file), "pressure/%s", resource);
		dir = m->proc;
	}
	path = hr_path_join(dir, file);
	if (path == NULL)
		(void)hr_err_nomem(&err);
	if (path == NULL || pressure_watch(m, path, percent, kind, &err) < 0) {
		lacks(missing, kind == HR_ALERT_MEM_PRESSURE ? "memory pressure" : "CPU pressure",
		    err.msg);
		hr_alert_level(m->alerts, kind, 0, (uint64_t)percent);
	} else if (m->alerts->v[kind].firing) {
		/* the kernel does not report the end, so measure until it comes */
		measure_begin(&m->sources[m->n - 1]);
	}
}

/* Watches a file of counters that the kernel notifies about. */
static int
counter_watch(struct hr_monitor *m, const char *dir, const char *name, struct hr_err *err)
{
	HR_FREE char *path = hr_path_join(dir, name);
	int fd, r = -1;

	if (path == NULL)
		return hr_err_nomem(err);
	if (m->inotify < 0) {
		fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
		if (fd < 0)
			(void)hr_err_sys(err, errno, "inotify");
		else if (source_add(m, HR_MONITOR_COUNTERS, fd, -1, HR_ALERTS, 0, err) == 0)
			m->inotify = fd;
	}
	if (m->inotify >= 0) {
		r = inotify_add_watch(m->inotify, path, IN_MODIFY) >= 0 ? 0 : -1;
		if (r != 0)
			(void)hr_err_sys(err, errno, "%s", path);
	}
	return r;
}

/* Records a value that is only read on request: version 1 has no events for it. */
static void
lacks_voice(struct hr_buf *missing, const char *what)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%s, except when /ready or /metrics is requested", what);
	lacks(missing, text, "control group of version 1");
}

static void
memory_open(struct hr_monitor *m, struct hr_buf *missing)
{
	const char *two = hr_usage_group(m->groups, "memory.events");
	struct hr_err err = {0};

	if (hr_settings_memory(m->settings) == 0)
		return;
	if (two != NULL) {
		if (counter_watch(m, two, "memory.events", &err) < 0)
			lacks(missing, "memory", err.msg);
	} else if (hr_usage_group(m->groups, "memory.oom_control") != NULL) {
		lacks_voice(missing, "memory");
	} else {
		lacks(missing, "memory", "no control group");
	}
}

static void
processes_open(struct hr_monitor *m, struct hr_buf *missing)
{
	const char *dir = hr_usage_group(m->groups, "pids.events");
	struct hr_err err = {0};

	if (m->settings->max_processes == 0)
		return;
	if (dir == NULL) {
		lacks(missing, "processes", "no control group");
		return;
	}
	if (!hr_usage_has_file(dir, "cgroup.events"))
		lacks_voice(missing, "processes");
	else if (counter_watch(m, dir, "pids.events", &err) < 0)
		lacks(missing, "processes", err.msg);
}

void
hr_monitor_init(struct hr_monitor *m)
{
	memset(m, 0, sizeof(*m));
	m->inotify = -1;
}

/* Starts counting; earlier events are not reported. */
static void
start_counting(struct hr_monitor *m)
{
	const char *two = hr_usage_group(m->groups, "memory.events"),
		   *one = hr_usage_group(m->groups, "memory.oom_control"),
		   *pids = hr_usage_group(m->groups, "pids.events");

	if (m->counting)
		return;
	m->counting = true;
	if (two != NULL)
		(void)hr_usage_number(two, "memory.events", "oom_kill", &m->oom_kills);
	else if (one != NULL)
		(void)hr_usage_number(one, "memory.oom_control", "oom_kill", &m->oom_kills);
	if (pids != NULL)
		(void)hr_usage_number(pids, "pids.events", "max", &m->refused);
}

void
hr_monitor_open(struct hr_monitor *m, struct hr_loop *loop, struct hr_alerts *alerts,
    const struct hr_settings *settings, const struct hr_cgroup *groups, const char *proc,
    struct hr_buf *missing)
{
	struct hr_err err = {0};

	m->loop = loop;
	m->alerts = alerts;
	m->settings = settings;
	m->groups = groups;
	m->proc = proc;
	m->pause = hr_loop_timer(loop, pause_over, m, &err);
	if (m->pause == NULL)
		lacks(missing, "anything", err.msg);
	start_counting(m);
	if (m->pause != NULL) {
		memory_open(m, missing);
		processes_open(m, missing);
		pressure_open(
		    m, "memory", settings->alert_memory_pressure, HR_ALERT_MEM_PRESSURE, missing);
		pressure_open(
		    m, "cpu", settings->alert_cpu_pressure, HR_ALERT_CPU_PRESSURE, missing);
	}
	look_at_counters(m);
	look_at_memory(m);
}

static void
unwatch(struct hr_monitor *m)
{
	unsigned i;

	for (i = 0; i < m->n; i++) {
		hr_watch_drop(&m->sources[i].watch);
		hr_watch_drop(&m->sources[i].measure);
	}
	hr_watch_drop(&m->pause);
}

static void
close_files(struct hr_monitor *m)
{
	unsigned i;

	for (i = 0; i < m->n; i++)
		hr_fd_close(&m->sources[i].file);
}

static void *
run_closer(void *arg)
{
	close_files(arg);
	return NULL;
}

void
hr_monitor_stop(struct hr_monitor *m)
{
	unwatch(m);
	m->alerts = NULL;
	if (!m->closing && m->n > 0)
		m->closing = pthread_create(&m->closer, NULL, run_closer, m) == 0;
}

void
hr_monitor_close(struct hr_monitor *m)
{
	struct hr_monitor was;
	unsigned i;

	unwatch(m);
	if (m->closing)
		(void)pthread_join(m->closer, NULL);
	close_files(m);
	for (i = 0; i < m->n; i++)
		hr_fd_close(&m->sources[i].fd);
	was = *m; /* the old state is kept, to be compared when the monitor is reopened */
	hr_monitor_init(m);
	m->oom_kills = was.oom_kills;
	m->refused = was.refused;
	m->counting = was.counting;
}
