/* Follows commands. A command appears when its directory loses the ~, a whole piece of output when
 * `out` has grown, and the end when the minder closes `status`. Invariant: `next` output events of
 * a command were reported, so that none is reported twice. */
#include "config.h"

#include "worker/v1/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

struct followed {
	LIST_ENTRY(followed) entry;
	struct hr_v1_command m;
	struct hr_v1_state state;
	int64_t next;    /* order of the next output event */
	int out, status; /* watches; -1: none */
};

struct hr_v1_follow {
	struct hr_rex_call *c;
	int fd, all; /* inotify's descriptor, and the watch of all commands */
	struct hr_watch *readable;
	hr_v1_event_fn *fn;
	void *arg;
	LIST_HEAD(, followed) list;
	struct hr_err why; /* the reason why events are missing; HR_OK: none */
};

static void
event_id(const struct hr_v1_command *m, int64_t order, char ret[HR_V1_ID])
{
	(void)snprintf(
	    ret, HR_V1_ID, "%.*s%04x", HR_V1_ID - 5, m->id, (unsigned)(order + 1) & 0xffff);
}

static void
report(const struct hr_v1_follow *f, const struct followed *o, int64_t order)
{
	char id[HR_V1_ID];

	event_id(&o->m, order, id);
	f->fn(f->arg, id);
}

static void
unwatch(const struct hr_v1_follow *f, struct followed *o)
{
	if (o->out >= 0)
		(void)inotify_rm_watch(f->fd, o->out);
	if (o->status >= 0)
		(void)inotify_rm_watch(f->fd, o->status);
	o->out = o->status = -1;
}

static void
forget(struct hr_v1_follow *f, struct followed *o)
{
	unwatch(f, o);
	LIST_REMOVE(o, entry);
	free(o);
}

/* Reports what a command has printed since, and its end. */
static void
look(struct hr_v1_follow *f, struct followed *o)
{
	int64_t n;

	if (o->state.over)
		return;
	if (hr_v1_look(f->c, o->m.id, &o->state) <= 0)
		return; /* the removal is an event of its own */
	n = hr_v1_outputs_now(f->c, &o->m, &o->state);
	/* the last event has the end: it is reported also if the output was cut meanwhile */
	if (o->state.over && o->next >= n)
		o->next = n > 0 ? n - 1 : 0;
	while (o->next < n)
		report(f, o, o->next++);
	if (o->state.over)
		unwatch(f, o);
}

/* Records the first reason why events are missing. */
static void
fail(struct hr_v1_follow *f, int sys, const char *path)
{
	if (f->why.code == HR_OK)
		(void)hr_err_sys(&f->why, sys, "%s cannot be watched%s", path,
		    sys == ENOSPC   ? " (see fs.inotify.max_user_watches)"
		    : sys == EMFILE ? " (see fs.inotify.max_user_instances)"
				    : "");
}

/* Watches a file of a command, which may have been removed meanwhile. */
static int
watch(struct hr_v1_follow *f, const char *id, const char *file, uint32_t events)
{
	HR_FREE char *path = hr_v1_path(f->c->w, id, file);
	int wd = path != NULL ? inotify_add_watch(f->fd, path, events) : -1;

	if (path == NULL)
		(void)hr_err_nomem(&f->why);
	else if (wd < 0 && errno != ENOENT)
		fail(f, errno, path);
	return wd;
}

/* Follows a command from now on. Returns NULL without memory or if there is no such command. */
static struct followed *
add(struct hr_v1_follow *f, const struct hr_v1_command *m)
{
	struct followed *o = calloc(1, sizeof(*o));

	if (o == NULL) {
		(void)hr_err_nomem(&f->why);
		return NULL;
	}
	o->m = *m;
	o->status = watch(f, m->id, "/status", IN_CLOSE_WRITE);
	o->out = watch(f, m->id, "/out", IN_MODIFY);
	LIST_INSERT_HEAD(&f->list, o, entry);
	if (hr_v1_look(f->c, m->id, &o->state) > 0)
		return o;
	forget(f, o);
	return NULL;
}

static struct followed *
find(const struct hr_v1_follow *f, const char *id, int wd)
{
	struct followed *o;

	LIST_FOREACH(o, &f->list, entry)
	{
		if (id != NULL ? strcmp(o->m.id, id) == 0 : o->out == wd || o->status == wd)
			break;
	}
	return o;
}

/* Reports a new command. */
static void
found(struct hr_v1_follow *f, const struct hr_v1_command *m)
{
	struct followed *o = find(f, m->id, -1) == NULL ? add(f, m) : NULL;

	if (o == NULL)
		return;
	o->state.over = false;
	report(f, o, -1);
	look(f, o);
}

/* Looks at all commands, as the kernel has lost events. */
static void
look_at_all(struct hr_v1_follow *f)
{
	HR_BUF(list, HR_V1_LIST_MAX);
	size_t n = hr_v1_list(f->c, &list);
	const struct hr_v1_entry *e = (const struct hr_v1_entry *)(const void *)list.p;
	struct followed *o;

	for (; n > 0; n--, e++)
		found(f, &e->m);
	LIST_FOREACH(o, &f->list, entry)
	{
		look(f, o);
	}
}

static void
take(struct hr_v1_follow *f, const struct inotify_event *e)
{
	struct hr_v1_command m;
	struct followed *o;

	if ((e->mask & IN_Q_OVERFLOW) != 0) {
		look_at_all(f);
		return;
	}
	if (e->wd == f->all && (e->mask & IN_IGNORED) != 0) {
		fail(f, ENOENT, "the directory of commands");
		return;
	}
	if (e->wd != f->all) {
		o = find(f, NULL, e->wd);
		if (o != NULL)
			look(f, o);
		return;
	}
	if (e->len == 0 || !hr_v1_parse_id(&m, hr_span_of(e->name)))
		return;
	if ((e->mask & IN_MOVED_TO) != 0) {
		found(f, &m);
		return;
	}
	o = find(f, m.id, -1);
	if (o != NULL)
		forget(f, o);
}

static void
on_events(void *arg)
{
	char buf[16384] __attribute__((aligned(__alignof__(struct inotify_event))));
	struct hr_v1_follow *f = arg;
	const struct inotify_event *e;
	ssize_t n = read(f->fd, buf, sizeof(buf)), at;

	for (at = 0; at < n; at += (ssize_t)(sizeof(*e) + e->len)) {
		e = (const struct inotify_event *)(const void *)(buf + at);
		take(f, e);
	}
	if (f->why.code == HR_OK)
		return;
	hr_watch_drop(&f->readable);
	f->fn(f->arg, NULL);
}

const struct hr_err *
hr_v1_follow_error(const struct hr_v1_follow *f)
{
	return f->why.code != HR_OK ? &f->why : NULL;
}

/* ---- all events ---- */

struct past {
	const struct hr_v1_follow *f;
	hr_v1_event_fn *fn;
	void *arg;
};

/* Reports an event, unless the follower reports it as a new one later. */
static void
report_past(void *arg, const struct hr_v1_command *m, int64_t order)
{
	const struct past *p = arg;
	const struct followed *o = find(p->f, m->id, -1);
	char id[HR_V1_ID];

	if (o == NULL || (!o->state.over && order >= o->next))
		return;
	event_id(m, order, id);
	p->fn(p->arg, id);
}

void
hr_v1_follow_all(const struct hr_v1_follow *f, hr_v1_event_fn *fn, void *arg)
{
	struct past p = {f, fn, arg};

	hr_v1_each_event(f->c, report_past, &p);
}

/* ---- start and end ---- */

struct hr_v1_follow *
hr_v1_follow_new(
    struct hr_rex_call *c, struct hr_loop *loop, hr_v1_event_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_v1_follow *f = calloc(1, sizeof(*f));
	HR_FREE char *path = hr_v1_path(c->w, "", "");
	const struct hr_v1_entry *e;
	HR_BUF(list, HR_V1_LIST_MAX);
	struct followed *o;
	size_t n;

	if (f == NULL || path == NULL) {
		free(f);
		return hr_err_null(err);
	}
	*f = (struct hr_v1_follow){.c = c, .fn = fn, .arg = arg, .fd = -1};
	f->fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if ((mkdir(path, 0700) == 0 || errno == EEXIST) && f->fd >= 0)
		f->all = inotify_add_watch(f->fd, path,
		    IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_ONLYDIR | IN_DONT_FOLLOW);
	if (f->fd < 0 || f->all <= 0) {
		fail(f, errno, path);
		*err = f->why;
		hr_v1_follow_free(f);
		return NULL;
	}
	f->readable = hr_loop_readable(loop, f->fd, on_events, f, err);
	if (f->readable == NULL) {
		hr_v1_follow_free(f);
		return NULL;
	}
	n = hr_v1_list(c, &list);
	for (e = (const struct hr_v1_entry *)(const void *)list.p; n > 0; n--, e++) {
		o = add(f, &e->m);
		if (o == NULL)
			continue;
		o->next = hr_v1_outputs_now(c, &o->m, &o->state);
		if (o->state.over)
			unwatch(f, o);
	}
	if (f->why.code == HR_OK)
		return f;
	*err = f->why;
	hr_v1_follow_free(f);
	return NULL;
}

void
hr_v1_follow_free(struct hr_v1_follow *f)
{
	struct followed *o;

	if (f == NULL)
		return;
	hr_watch_free(f->readable);
	while ((o = LIST_FIRST(&f->list)) != NULL)
		forget(f, o);
	hr_fd_close(&f->fd);
	free(f);
}
