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
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/path.h"
#include "supervisor/alert.h"
#include "supervisor/cgroup.h"
#include "supervisor/settings.h"

#define FILE_MAX (64u << 10)
#define LEVEL_TRIES 4
#define WINDOW_US 2000000u /* what the kernel gives to everybody is a multiple of this */

/* ---- files of the kernel ---- */

static bool
has_file(const char *dir, const char *name)
{
	char *path = hr_path_join(dir, name);
	bool there = path != NULL && access(path, F_OK) == 0;

	free(path);
	return there;
}

/* The number behind a key, "" for the first one of the file. false: there is none. */
static bool
number_in(const char *dir, const char *name, const char *key, uint64_t *ret)
{
	char *path = hr_path_join(dir, name), *line, *save = NULL, *end;
	size_t len = strlen(key);
	bool found = false;
	struct hr_buf text;

	hr_buf_init(&text, FILE_MAX);
	line = path != NULL && hr_path_read(path, &text, NULL) == 0 && text.len > 0
		   ? strtok_r(text.p, "\n", &save)
		   : NULL;
	for (; line != NULL && !found; line = strtok_r(NULL, "\n", &save)) {
		if (len > 0 && (strncmp(line, key, len) != 0 || line[len] != ' '))
			continue;
		errno = 0;
		*ret = strtoull(line + (len > 0 ? len + 1 : 0), &end, 10);
		found = errno == 0 && *end == '\0';
	}
	hr_buf_done(&text);
	free(path);
	return found;
}

/* The group that has a file; NULL: none. */
static const char *
group_with(const struct hr_monitor *m, const char *file)
{
	size_t i;

	for (i = 0; i < m->groups->n; i++) {
		if (has_file(m->groups->dirs[i], file))
			return m->groups->dirs[i];
	}
	return NULL;
}

/* ---- what there is now ---- */

struct use {
	uint64_t raw,
	    cached; /* bytes; cached: of files, which the kernel gives back when it must */
	uint64_t net;
};

static bool
memory_used(const struct hr_monitor *m, struct use *ret)
{
	const char *two = group_with(m, "memory.current"), *one;

	ret->cached = 0;
	if (two != NULL && number_in(two, "memory.current", "", &ret->raw)) {
		(void)number_in(two, "memory.stat", "inactive_file", &ret->cached);
	} else {
		one = group_with(m, "memory.usage_in_bytes");
		if (one == NULL || !number_in(one, "memory.usage_in_bytes", "", &ret->raw))
			return false;
		(void)number_in(one, "memory.stat", "total_inactive_file", &ret->cached);
	}
	if (ret->cached > ret->raw)
		ret->cached = ret->raw;
	ret->net = ret->raw - ret->cached;
	return true;
}

static void
look_at_memory(struct hr_monitor *m)
{
	const struct hr_settings *c = m->settings;
	uint64_t percent, limit = hr_settings_memory(c);
	struct use use;

	if (limit == 0 || !memory_used(m, &use))
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
	const char *dir = group_with(m, file);
	uint64_t now;

	if (dir == NULL || !number_in(dir, file, key, &now) || now <= *known)
		return;
	*known = now;
	hr_alert_event(m->alerts, kind, now, 1);
}

static void
look_at_counters(struct hr_monitor *m)
{
	count(m, "memory.events", "oom_kill", HR_ALERT_OOM_KILL, &m->oom_kills);
	count(m, "pids.events", "max", HR_ALERT_PIDS_MAX, &m->refused);
}

void
hr_monitor_look(struct hr_monitor *m)
{
	const struct hr_settings *c = m->settings;
	struct statvfs st;
	uint64_t all, used;

	if (m->alerts == NULL)
		return;
	look_at_memory(m);
	look_at_counters(m);
	if (statvfs(c->working_dir, &st) != 0 || st.f_blocks == 0)
		return; /* a missing sample keeps the state */
	/* as df counts: what only root may take is not there */
	used = st.f_blocks - st.f_bfree;
	all = used + st.f_bavail;
	hr_alert_level(m->alerts, HR_ALERT_DISK_HIGH, all > 0 ? (used * 100 + all - 1) / all : 0,
	    (uint64_t)c->alert_disk);
}

/* ---- events ---- */

static void source_ready(void *arg);
static int eventfd_open(const char *dir, const char *name, uint64_t bytes, struct hr_err *err);

/* The number that the kernel compares counts the cached bytes, too: where the use without them can
 * cross the threshold of the source next. 0: it is right as it is. */
static uint64_t
level_next(const struct hr_monitor_source *s, const struct use *use, uint64_t step)
{
	uint64_t with = s->threshold + use->cached;

	if (use->net >= s->threshold)
		return s->at > s->threshold && s->at <= use->raw ? 0 : with;
	if (use->raw < s->threshold)
		return s->threshold;
	if (s->at > use->raw)
		return 0;
	return with > use->raw + step ? with : use->raw + step;
}

static void
level_follow(struct hr_monitor_source *s)
{
	const char *dir = group_with(s->of, "memory.usage_in_bytes");
	uint64_t step = hr_settings_memory(s->of->settings) / 100, next;
	struct hr_err err = {0};
	struct hr_watch *watch;
	struct use use;
	int tries, fd;

	/* again, as it may have been crossed before the kernel knew the new one */
	for (tries = 0; tries < LEVEL_TRIES && dir != NULL && memory_used(s->of, &use); tries++) {
		next = level_next(s, &use, step);
		if (next == 0 || next == s->at)
			return;
		fd = eventfd_open(dir, "memory.usage_in_bytes", next, &err);
		watch = fd >= 0 ? hr_loop_readable(s->of->loop, fd, source_ready, s, &err) : NULL;
		if (watch == NULL) { /* the old one stays */
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
source_ready(void *arg)
{
	struct hr_monitor_source *s = arg;
	struct epoll_event e;
	uint64_t n;

	/* the kernel told the epoll once, and forgot it by that: there may be nothing left in it */
	if (s->file < 0)
		(void)hr_fd_read(s->fd, &n, sizeof(n));
	else
		(void)epoll_wait(s->fd, &e, 1, 0);
	if (s->at > 0)
		level_follow(s);
	if (s->kind == HR_ALERT_OOM_KILL) {
		s->of->oom_kills++; /* told before the file has it */
		hr_alert_event(s->of->alerts, s->kind, s->of->oom_kills, 1);
	} else if (s->file >= 0) {
		hr_alert_event(s->of->alerts, s->kind, s->threshold, s->threshold);
	}
	look_at_memory(s->of);
}

static void
counters_changed(void *arg)
{
	struct hr_monitor *m = arg;
	char trash[4096];

	while (hr_fd_read(m->inotify, trash, sizeof(trash)) > 0)
		;
	look_at_counters(m);
	look_at_memory(m);
}

/* ---- what can be watched ---- */

static void
lacks(struct hr_buf *missing, const char *what, const char *why)
{
	hr_buf_addf(missing, "%s%s (%s)", missing->len > 0 ? ", " : "", what, why);
}

/* Takes the descriptors over, on success as well as on failure. */
static int
source_add(struct hr_monitor *m, int fd, int file, enum hr_alert_kind kind, uint64_t threshold,
    struct hr_err *err)
{
	struct hr_monitor_source *s = &m->sources[m->n];

	hr_assert(m->n < HR_MONITOR_SOURCES);
	*s = (struct hr_monitor_source){
	    .of = m, .fd = fd, .file = file, .kind = kind, .threshold = threshold};
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
		return source_add(m, ep, file, kind, (uint64_t)percent, err);
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
	dir = group_with(m, file);
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
 * direction (file memory.usage_in_bytes), or at each lack of memory (memory.oom_control). */
static int
eventfd_open(const char *dir, const char *name, uint64_t bytes, struct hr_err *err)
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
		len = bytes > 0 ? snprintf(text, sizeof(text), "%d %d %" PRIu64, fd, file, bytes)
				: snprintf(text, sizeof(text), "%d %d", fd, file);
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

/* percent of the limit; 0: none */
static int
level_open(struct hr_monitor *m, const char *dir, long long percent, enum hr_alert_kind kind,
    struct hr_err *err)
{
	uint64_t bytes = hr_settings_memory(m->settings) / 100 * (uint64_t)percent;
	int fd;

	if (percent == 0)
		return 0;
	fd = eventfd_open(dir, "memory.usage_in_bytes", bytes, err);
	if (fd < 0 || source_add(m, fd, -1, kind, bytes, err) != 0)
		return -1;
	m->sources[m->n - 1].at = bytes;
	return 0;
}

/* A file of counters of which the kernel says when one changes. */
static int
counter_watch(struct hr_monitor *m, const char *dir, const char *name, struct hr_err *err)
{
	char *path = hr_path_join(dir, name);
	int r = -1;

	if (path == NULL)
		return hr_err_nomem(err);
	if (m->inotify < 0)
		m->inotify = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (m->inotify < 0 || inotify_add_watch(m->inotify, path, IN_MODIFY) < 0) {
		(void)hr_err_sys(err, errno, "%s", path);
	} else {
		if (m->inotify_watch == NULL)
			m->inotify_watch =
			    hr_loop_readable(m->loop, m->inotify, counters_changed, m, err);
		r = m->inotify_watch != NULL ? 0 : -1;
	}
	free(path);
	return r;
}

static void
memory_open(struct hr_monitor *m, struct hr_buf *missing)
{
	const struct hr_settings *c = m->settings;
	const char *dir = group_with(m, "memory.events");
	struct hr_err err = {0};
	int r = 0, fd;

	if (hr_settings_memory(c) == 0)
		return;
	if (dir != NULL) {
		(void)number_in(dir, "memory.events", "oom_kill", &m->oom_kills);
		r = counter_watch(m, dir, "memory.events", &err);
	} else if ((dir = group_with(m, "memory.oom_control")) != NULL) {
		(void)number_in(dir, "memory.oom_control", "oom_kill", &m->oom_kills);
		fd = eventfd_open(dir, "memory.oom_control", 0, &err);
		r = fd >= 0 ? source_add(m, fd, -1, HR_ALERT_OOM_KILL, 0, &err) : -1;
		if (r == 0)
			r = level_open(m, dir, c->alert_memory, HR_ALERT_MEM_HIGH, &err);
		if (r == 0)
			r = level_open(
			    m, dir, c->alert_memory_critical, HR_ALERT_MEM_CRITICAL, &err);
	} else {
		r = hr_err_set(&err, HR_E_NOTFOUND, "no control group");
	}
	if (r != 0)
		lacks(missing, "memory", err.msg);
}

static void
processes_open(struct hr_monitor *m, struct hr_buf *missing)
{
	const char *dir = group_with(m, "pids.events");
	struct hr_err err = {0};

	if (m->settings->max_processes == 0)
		return;
	if (dir == NULL) {
		lacks(missing, "processes", "no control group");
		return;
	}
	(void)number_in(dir, "pids.events", "max", &m->refused);
	if (!has_file(dir, "cgroup.events"))
		lacks(missing, "processes but when /ready is asked", "control group of version 1");
	else if (counter_watch(m, dir, "pids.events", &err) != 0)
		lacks(missing, "processes", err.msg);
}

void
hr_monitor_init(struct hr_monitor *m)
{
	memset(m, 0, sizeof(*m));
	m->inotify = -1;
}

void
hr_monitor_open(struct hr_monitor *m, struct hr_loop *loop, struct hr_alerts *alerts,
    const struct hr_settings *settings, const struct hr_cgroup *groups, const char *proc,
    struct hr_buf *missing)
{
	hr_monitor_init(m);
	m->loop = loop;
	m->alerts = alerts;
	m->settings = settings;
	m->groups = groups;
	m->proc = proc;
	memory_open(m, missing);
	processes_open(m, missing);
	pressure_open(m, "memory", settings->alert_memory_pressure, HR_ALERT_MEM_PRESSURE, missing);
	pressure_open(m, "cpu", settings->alert_cpu_pressure, HR_ALERT_CPU_PRESSURE, missing);
	look_at_memory(m);
}

void
hr_monitor_close(struct hr_monitor *m)
{
	unsigned i;

	for (i = 0; i < m->n; i++) {
		hr_watch_free(m->sources[i].watch);
		hr_fd_close(&m->sources[i].fd);
		hr_fd_close(&m->sources[i].file);
	}
	hr_watch_free(m->inotify_watch);
	hr_fd_close(&m->inotify);
	hr_monitor_init(m);
}
