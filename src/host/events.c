/* What happens to sandboxes: records that appear and go, processes that end, and what an Engine
 * tells of containers. All of it is waited for, nothing is asked again and again. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/fd.h"
#include "base/path.h"
#include "host/docker/engine.h"
#include "host/common/error.h"
#include "host/common/proc.h"
#include "host/sandbox.h"
#include "proto/json.h"

#define SUFFIX ".json"
#define WATCHED_MAX 256
#define LINE_MAX_BYTES (1u << 20)
#define FILTER "/events?filters=%7B%22type%22%3A%5B%22container%22%5D%7D"

struct watched {
	char *sid;
	struct hr_record record;
	int fd; /* readable when its process has ended; -1: there is none, or it has ended */
};

struct follow {
	const char *state_dir;
	const char *const *env;
	hr_event_fn *fn;
	void *arg;
	int stop; /* what fn answered */
	struct watched v[WATCHED_MAX];
	size_t n;
	int feed[2]; /* from the thread that listens to the Engine; -1: there is none */
	struct hr_buf line;
};

static void
report(struct follow *f, const char *sid, const char *what, const char *detail)
{
	if (f->stop == 0)
		f->stop = f->fn(f->arg, sid, what, detail);
}

/* ---- the Engine ---- */

struct listener {
	const char *const *env; /* borrowed for as long as the process lives */
	int fd;
};

static int
pass_on(void *arg, const char *p, size_t len)
{
	const struct listener *l = arg;
	ssize_t n;

	for (; len > 0; p += n, len -= (size_t)n) {
		while ((n = send(l->fd, p, len, MSG_NOSIGNAL)) < 0 && errno == EINTR)
			;
		if (n < 0)
			return -1;
	}
	return 0;
}

/* Ends with the Engine, or when nobody reads any more. */
static void *
listen_to_engine(void *arg)
{
	struct listener *l = arg;
	struct hr_engine e = {0};

	/* one that does not answer has nothing to tell */
	if (hr_engine_init(&e, l->env, NULL) == 0)
		(void)hr_engine_stream(&e, "GET", FILTER, NULL, NULL, pass_on, l, 0, NULL);
	hr_engine_done(&e);
	hr_fd_close(&l->fd);
	free(l);
	return NULL;
}

static void
start_listening(struct follow *f)
{
	struct listener *l = f->feed[0] < 0 ? malloc(sizeof(*l)) : NULL;
	pthread_t thread;
	sigset_t all, before;
	int rc;

	/* unlike a pipe it can be written without SIGPIPE when nobody reads any more */
	if (l == NULL || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, f->feed) != 0) {
		free(l);
		return;
	}
	*l = (struct listener){f->env, f->feed[1]};
	(void)sigfillset(&all); /* signals are the caller's */
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&thread, NULL, listen_to_engine, l);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rc == 0) {
		(void)pthread_detach(thread);
		return;
	}
	hr_fd_close(&f->feed[0]);
	hr_fd_close(&f->feed[1]);
	free(l);
}

static void
engine_line(struct follow *f)
{
	struct hr_engine_event e;

	if (hr_engine_event(&e, hr_buf_str(&f->line), f->line.len))
		report(f, e.sid, e.what, e.detail);
	hr_buf_reset(&f->line);
}

static void
from_engine(struct follow *f)
{
	char piece[4096];
	ssize_t n = hr_fd_read(f->feed[0], piece, sizeof(piece));

	if (n <= 0) {
		hr_fd_close(&f->feed[0]);
		return;
	}
	for (ssize_t i = 0; i < n; i++) {
		if (piece[i] == '\n')
			engine_line(f);
		else
			hr_buf_addc(&f->line, piece[i]);
	}
}

/* ---- records ---- */

static struct watched *
find(struct follow *f, const char *sid)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->v[i].sid, sid) == 0)
			return &f->v[i];
	return NULL;
}

static void
forget(struct follow *f, struct watched *w)
{
	hr_fd_close(&w->fd);
	hr_record_done(&w->record);
	free(w->sid);
	*w = f->v[--f->n];
}

/* -1: its process cannot be watched, or there is none. */
static int
process_of(const char *record)
{
	struct json_object *o = NULL;
	struct hr_json_error why;
	int64_t pid;
	int fd = -1;

	if (hr_json_decode(record, strlen(record), &o, &why) == 0 &&
	    (pid = hr_json_int_at(o, "pid")) > 0 && pid <= INT_MAX)
		fd = hr_proc_watch((pid_t)pid, (unsigned long long)hr_json_int_at(o, "started"));
	json_object_put(o);
	return fd;
}

/* A record is written several times while a sandbox starts, and read as it is by now: what one
 * event has shown the next may show again. */
static bool
is_known(const struct watched *w, const struct hr_record *r)
{
	return w != NULL && w->record.created == r->created &&
	       strcmp(w->record.runtime, r->runtime) == 0 &&
	       strcmp(w->record.backend, r->backend) == 0;
}

static struct watched *
watch_new(struct follow *f, const char *sid)
{
	struct watched w = {.sid = f->n < WATCHED_MAX ? strdup(sid) : NULL, .fd = -1};

	if (w.sid == NULL)
		return NULL;
	f->v[f->n] = w;
	return &f->v[f->n++];
}

static void
remember(struct follow *f, const char *sid, bool is_new)
{
	struct hr_record record;
	struct watched *w = find(f, sid);

	/* one that is not ready yet will be recorded again */
	if (hr_record_load(f->state_dir, sid, &record, NULL) != 0 || record.runtime == NULL ||
	    record.backend == NULL || record.taking != NULL || is_known(w, &record) ||
	    (w == NULL && (w = watch_new(f, sid)) == NULL)) {
		hr_record_done(&record);
		return;
	}
	if (strcmp(record.runtime, "docker") == 0)
		start_listening(f);
	hr_fd_close(&w->fd);
	hr_record_done(&w->record);
	w->record = record;
	w->fd = process_of(record.backend);
	if (is_new)
		report(f, sid, "up", record.runtime);
}

static void
record_changed(struct follow *f, const char *file, bool gone)
{
	size_t n = strlen(file), s = sizeof(SUFFIX) - 1;
	struct watched *w;
	char sid[NAME_MAX + 1];

	if (n <= s || n > NAME_MAX || strcmp(file + n - s, SUFFIX) != 0 || file[0] == '.')
		return;
	(void)snprintf(sid, sizeof(sid), "%.*s", (int)(n - s), file);
	w = find(f, sid);
	if (!gone) {
		remember(f, sid, true);
	} else if (w != NULL) {
		forget(f, w);
		report(f, sid, "down", "");
	}
}

static void
from_records(struct follow *f, int in)
{
	char room[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)]
	    __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = hr_fd_read(in, room, sizeof(room));
	struct inotify_event e;

	for (char *p = room; n > 0 && p < room + n; p += sizeof(e) + e.len) {
		memcpy(&e, p, sizeof(e));
		if (e.len > 0)
			record_changed(f, p + sizeof(e), (e.mask & IN_DELETE) != 0);
	}
}

static void
known_ones(struct follow *f)
{
	struct json_object *list = NULL;
	struct hr_json_error why;
	char *text = hr_sandbox_list(f->state_dir, NULL);

	if (text != NULL && hr_json_decode(text, strlen(text), &list, &why) == 0)
		for (size_t i = 0; i < hr_json_count(list); i++)
			remember(f, hr_json_text_or(hr_json_entry(list, i), "sid", ""), false);
	json_object_put(list);
	free(text);
}

/* ---- waiting ---- */

static int
wait_once(struct follow *f, int in, struct hr_error *err)
{
	struct pollfd p[WATCHED_MAX + 2];
	size_t n = f->n;

	p[0] = (struct pollfd){.fd = in, .events = POLLIN};
	p[1] = (struct pollfd){.fd = f->feed[0], .events = POLLIN};
	for (size_t i = 0; i < n; i++)
		p[i + 2] = (struct pollfd){.fd = f->v[i].fd, .events = POLLIN};
	if (poll(p, n + 2, -1) < 0)
		return errno == EINTR ? 0 : hr_error_sys(err, errno, "wait for events");
	for (size_t i = 0; i < n; i++)
		if (p[i + 2].revents != 0) {
			hr_fd_close(&f->v[i].fd);
			report(f, f->v[i].sid, "exited", "");
		}
	if (p[1].revents != 0)
		from_engine(f);
	if (p[0].revents != 0)
		from_records(f, in); /* last: the list may change */
	return 0;
}

int
hr_sandbox_events(
    const char *state_dir, const char *const *env, hr_event_fn *fn, void *arg, struct hr_error *err)
{
	struct follow f = {
	    .state_dir = state_dir, .env = env, .fn = fn, .arg = arg, .feed = {-1, -1}};
	int in, rc = 0;

	if (hr_state_directory(state_dir, true, err) != 0)
		return -1;
	in = inotify_init1(IN_CLOEXEC);
	if (in < 0 || inotify_add_watch(in, state_dir, IN_MOVED_TO | IN_DELETE) < 0) {
		rc = hr_error_sys(err, errno, "watch %s", state_dir);
		hr_fd_close(&in);
		return rc;
	}
	hr_buf_init(&f.line, LINE_MAX_BYTES);
	known_ones(&f);
	report(&f, "", "watching", "");
	while (rc == 0 && f.stop == 0)
		rc = wait_once(&f, in, err);
	while (f.n > 0)
		forget(&f, &f.v[0]);
	hr_fd_close(&in);
	hr_fd_close(&f.feed[0]);
	hr_buf_done(&f.line);
	return rc;
}
