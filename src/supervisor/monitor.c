/* Events of the kernel: pressure triggers, thresholds (control groups of version 1), counters that
 * are written to when they change. */
#include "config.h"

#include "supervisor/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/path.h"
#include "supervisor/alert.h"
#include "supervisor/cgroup.h"
#include "supervisor/settings.h"
#include "supervisor/usage.h"

#define LEVEL_TRIES 4
#define PAUSE_MS 1000
#define ACTIONS_LEAST 4
#define WINDOW_US 2000000u /* what the kernel gives to everybody is a multiple of this */

/* ---- what there is now ---- */

static void
look_at_memory(struct hr_monitor *m)
{
	const struct hr_settings *c = m->settings;
	uint64_t percent, limit = hr_settings_memory(c);
	struct hr_usage_memory use;

	if (limit == 0 || !hr_usage_memory(m->groups, &use))
		return;
	percent = use.net / (limit / 100);
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

/* Of few actions a share says nothing. */
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

static void source_ready(void *arg);
static int eventfd_open(const char *dir, const char *name, const char *what, struct hr_err *err);
static int level_eventfd(const char *dir, uint64_t bytes, struct hr_err *err);

/* Wake-ups in a second: a group at its limit changes its counters a hundred times in each. What
 * comes more often waits for the end of the second. 0: the kernel spares us by itself. */
static const unsigned turns_most[] = {
    [HR_MONITOR_OOM] = 4,
    [HR_MONITOR_LEVEL] = 4,
    [HR_MONITOR_RECLAIM] = 1,
    [HR_MONITOR_COUNTERS] = 1,
    [HR_MONITOR_PRESSURE] = 0,
};

static uint64_t
level_step(const struct hr_monitor *m)
{
	return hr_settings_memory(m->settings) / 100;
}

/* The highest number that the use of a group at its limit is sure to cross. */
static uint64_t
level_top(const struct hr_monitor *m)
{
	return hr_settings_memory(m->settings) - level_step(m);
}

/* The number that the kernel compares counts the cached bytes, too: where the use without them can
 * cross the threshold of the source next. 0: it is right as it is. */
static uint64_t
level_next(const struct hr_monitor_source *s, const struct hr_usage_memory *use)
{
	uint64_t with = s->threshold + use->cached, step = level_step(s->of),
		 top = level_top(s->of), next;

	if (use->net >= s->threshold)
		next = s->at > s->threshold && s->at <= use->raw ? 0 : with;
	else if (use->raw < s->threshold)
		next = s->threshold;
	else if (s->at > use->raw)
		next = 0;
	else
		next = with > use->raw + step ? with : use->raw + step;
	return next < top ? next : top;
}

static void
level_follow(struct hr_monitor_source *s)
{
	const char *dir = hr_usage_group(s->of->groups, "memory.usage_in_bytes");
	struct hr_usage_memory use;
	struct hr_watch *watch = NULL;
	struct hr_err err = {0};
	uint64_t next;
	int tries, fd;

	/* again, as it may have been crossed before the kernel knew the new one */
	for (tries = 0; tries < LEVEL_TRIES && dir != NULL && hr_usage_memory(s->of->groups, &use);
	     tries++) {
		next = level_next(s, &use);
		if (next == 0 || next == s->at)
			return;
		fd = level_eventfd(dir, next, &err);
		if (fd >= 0 && s->watch != NULL)
			watch = hr_loop_readable(s->of->loop, fd, source_ready, s, &err);
		if (fd < 0 || (s->watch != NULL && watch == NULL)) { /* the old one stays */
			hr_log(HR_LOG_WARNING, "alerts about memory: %s", err.msg);
			hr_fd_close(&fd);
			return;
		}
		hr_watch_free(s->watch);
		hr_fd_close(&s->fd);
		s->watch = watch;
		s->fd = fd;
		s->at = next;
	}
}

static void
memory_changed(struct hr_monitor *m)
{
	unsigned i;

	for (i = 0; i < m->n; i++) {
		if (m->sources[i].what == HR_MONITOR_LEVEL)
			level_follow(&m->sources[i]);
	}
	look_at_memory(m);
}

/* Whether something has happened; how often, where the kernel counts. */
static bool
source_take(const struct hr_monitor_source *s, uint64_t *ret)
{
	struct epoll_event e;
	char trash[4096];
	bool any = false;

	*ret = 1;
	switch (s->what) {
	case HR_MONITOR_PRESSURE: return epoll_wait(s->fd, &e, 1, 0) > 0;
	case HR_MONITOR_COUNTERS:
		while (hr_fd_read(s->fd, trash, sizeof(trash)) > 0)
			any = true;
		return any;
	default: return hr_fd_read(s->fd, ret, sizeof(*ret)) == (ssize_t)sizeof(*ret);
	}
}

static void
source_tell(struct hr_monitor_source *s, uint64_t times)
{
	struct hr_monitor *m = s->of;

	if (s->what == HR_MONITOR_OOM) {
		m->oom_kills += times; /* told before the file has it */
		hr_alert_event(m->alerts, s->kind, m->oom_kills, 1);
	} else if (s->what == HR_MONITOR_PRESSURE) {
		hr_alert_event(m->alerts, s->kind, s->threshold, s->threshold);
	} else if (s->what == HR_MONITOR_COUNTERS) {
		look_at_counters(m);
	}
}

static void
source_ready(void *arg)
{
	struct hr_monitor_source *s = arg;
	struct hr_monitor *m = s->of;
	uint64_t times;

	/* of pressure the kernel told the epoll once, and forgot it by that */
	if (!source_take(s, &times) && s->what != HR_MONITOR_PRESSURE)
		return;
	source_tell(s, times);
	memory_changed(m);
	if (turns_most[s->what] == 0)
		return;
	if (!m->pausing)
		m->pausing = hr_watch_arm(m->pause, PAUSE_MS, NULL) == 0;
	if (!m->pausing || ++s->turns < turns_most[s->what])
		return;
	hr_watch_free(s->watch);
	s->watch = NULL;
}

static void
pause_over(void *arg)
{
	struct hr_monitor *m = arg;
	bool all = true;
	unsigned i;

	for (i = 0; i < m->n; i++) {
		struct hr_monitor_source *s = &m->sources[i];

		s->turns = 0;
		if (s->watch == NULL)
			s->watch = hr_loop_readable(m->loop, s->fd, source_ready, s, NULL);
		all = all && s->watch != NULL;
	}
	m->pausing = !all && hr_watch_arm(m->pause, PAUSE_MS, NULL) == 0;
	look_at_counters(m);
	memory_changed(m);
}

/* ---- what can be watched ---- */

static void
lacks(struct hr_buf *missing, const char *what, const char *why)
{
	hr_buf_addf(missing, "%s%s (%s)", missing->len > 0 ? ", " : "", what, why);
}

/* Takes the descriptors over, on success as well as on failure. */
static int
source_add(struct hr_monitor *m, enum hr_monitor_what what, int fd, int file,
    enum hr_alert_kind kind, uint64_t threshold, struct hr_err *err)
{
	struct hr_monitor_source *s = &m->sources[m->n];

	hr_assert(m->n < HR_MONITOR_SOURCES);
	*s = (struct hr_monitor_source){
	    .of = m, .what = what, .fd = fd, .file = file, .kind = kind, .threshold = threshold};
	s->watch = hr_loop_readable(m->loop, fd, source_ready, s, err);
	if (s->watch != NULL) {
		m->n++;
		return 0;
	}
	hr_fd_close(&s->fd);
	hr_fd_close(&s->file);
	return -1;
}

/* libevent does not know EPOLLPRI, and such a file is always "readable": an epoll around it is not.
 */
static int
pressure_watch(struct hr_monitor *m, const char *path, long long percent, enum hr_alert_kind kind,
    struct hr_err *err)
{
	struct epoll_event e = {.events = EPOLLPRI};
	char text[64];
	int len =
	    snprintf(text, sizeof(text), "some %lld %u", percent * (WINDOW_US / 100), WINDOW_US);
	int file = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC), ep = -1;

	/* with its NUL, which the kernel puts its own in place of */
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

/* Of the commands' own group where there is one of version 2, else of the machine. */
static void
pressure_open(struct hr_monitor *m, const char *resource, long long percent,
    enum hr_alert_kind kind, struct hr_buf *missing)
{
	struct hr_err err = {0};
	char file[32], *path;
	const char *dir;

	if (percent == 0)
		return;
	(void)snprintf(file, sizeof(file), "%s.pressure", resource);
	dir = hr_usage_group(m->groups, file);
	if (dir == NULL) {
		(void)snprintf(file, sizeof(file), "pressure/%s", resource);
		dir = m->proc;
	}
	path = hr_path_join(dir, file);
	if (path == NULL)
		(void)hr_err_nomem(&err);
	if (path == NULL || pressure_watch(m, path, percent, kind, &err) != 0)
		lacks(missing, kind == HR_ALERT_MEM_PRESSURE ? "memory pressure" : "CPU pressure",
		    err.msg);
	free(path);
}

/* Version 1: the kernel writes to an eventfd when the use of a group crosses a number, in either
 * direction (file memory.usage_in_bytes), at each lack of memory (memory.oom_control), or while it
 * takes memory back (memory.pressure_level). */
static int
eventfd_open(const char *dir, const char *name, const char *what, struct hr_err *err)
{
	char *path = hr_path_join(dir, name), *control = hr_path_join(dir, "cgroup.event_control");
	int file = -1, to = -1, fd = -1, len;
	char text[64];

	if (path == NULL || control == NULL) {
		(void)hr_err_nomem(err);
	} else if ((file = open(path, O_RDONLY | O_CLOEXEC)) < 0 ||
		   (to = open(control, O_WRONLY | O_CLOEXEC)) < 0 ||
		   (fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) < 0) {
		(void)hr_err_sys(err, errno, "%s", path);
	} else {
		len = snprintf(
		    text, sizeof(text), "%d %d%s%s", fd, file, what[0] != '\0' ? " " : "", what);
		if (write(to, text, (size_t)len) != (ssize_t)len) {
			(void)hr_err_sys(err, errno, "%s", control);
			hr_fd_close(&fd);
		}
	}
	hr_fd_close(&to);
	hr_fd_close(&file);
	free(path);
	free(control);
	return fd;
}

static int
level_eventfd(const char *dir, uint64_t bytes, struct hr_err *err)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%" PRIu64, bytes);
	return eventfd_open(dir, "memory.usage_in_bytes", text, err);
}

/* percent of the limit; 0: none */
static int
level_open(struct hr_monitor *m, const char *dir, long long percent, enum hr_alert_kind kind,
    struct hr_err *err)
{
	uint64_t threshold = level_step(m) * (uint64_t)percent,
		 at = threshold < level_top(m) ? threshold : level_top(m);
	int fd;

	if (percent == 0)
		return 0;
	fd = level_eventfd(dir, at, err);
	if (fd < 0 || source_add(m, HR_MONITOR_LEVEL, fd, -1, kind, threshold, err) != 0)
		return -1;
	m->sources[m->n - 1].at = at;
	return 0;
}

/* A group that is full of cached bytes stays at its limit while their place is taken by others: no
 * number is crossed then, but the kernel tells that it takes them back. */
static int
reclaim_open(struct hr_monitor *m, const char *dir, struct hr_err *err)
{
	int fd;

	if (m->settings->alert_memory == 0 && m->settings->alert_memory_critical == 0)
		return 0;
	fd = eventfd_open(dir, "memory.pressure_level", "low", err);
	return fd >= 0 ? source_add(m, HR_MONITOR_RECLAIM, fd, -1, HR_ALERT_MEM_HIGH, 0, err) : -1;
}

/* A file of counters of which the kernel says when one changes. */
static int
counter_watch(struct hr_monitor *m, const char *dir, const char *name, struct hr_err *err)
{
	char *path = hr_path_join(dir, name);
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
	free(path);
	return r;
}

static int
memory_open_one(struct hr_monitor *m, const char *dir, struct hr_err *err)
{
	const struct hr_settings *c = m->settings;
	int fd = eventfd_open(dir, "memory.oom_control", "", err);

	if (fd < 0 || source_add(m, HR_MONITOR_OOM, fd, -1, HR_ALERT_OOM_KILL, 0, err) != 0 ||
	    level_open(m, dir, c->alert_memory, HR_ALERT_MEM_HIGH, err) != 0 ||
	    level_open(m, dir, c->alert_memory_critical, HR_ALERT_MEM_CRITICAL, err) != 0)
		return -1;
	return reclaim_open(m, dir, err);
}

static void
memory_open(struct hr_monitor *m, struct hr_buf *missing)
{
	const char *two = hr_usage_group(m->groups, "memory.events"),
		   *one = hr_usage_group(m->groups, "memory.oom_control");
	struct hr_err err = {0};
	int r;

	if (hr_settings_memory(m->settings) == 0)
		return;
	if (two != NULL)
		r = counter_watch(m, two, "memory.events", &err);
	else if (one != NULL)
		r = memory_open_one(m, one, &err);
	else
		r = hr_err_set(&err, HR_E_NOTFOUND, "no control group");
	if (r != 0)
		lacks(missing, "memory", err.msg);
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
		lacks(missing, "processes but when /ready or /metrics is asked",
		    "control group of version 1");
	else if (counter_watch(m, dir, "pids.events", &err) != 0)
		lacks(missing, "processes", err.msg);
}

void
hr_monitor_init(struct hr_monitor *m)
{
	memset(m, 0, sizeof(*m));
	m->inotify = -1;
}

/* What was there before us is not told. */
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
	memory_changed(m);
}

void
hr_monitor_close(struct hr_monitor *m)
{
	struct hr_monitor was;
	uint64_t times;
	unsigned i;

	/* what the kernel has told already */
	for (i = 0; i < m->n; i++) {
		if (source_take(&m->sources[i], &times))
			source_tell(&m->sources[i], times);
	}
	for (i = 0; i < m->n; i++) {
		hr_watch_free(m->sources[i].watch);
		hr_fd_close(&m->sources[i].fd);
		hr_fd_close(&m->sources[i].file);
	}
	hr_watch_free(m->pause);
	was = *m; /* counters are compared when it is opened again */
	hr_monitor_init(m);
	m->oom_kills = was.oom_kills;
	m->refused = was.refused;
	m->counting = was.counting;
}
