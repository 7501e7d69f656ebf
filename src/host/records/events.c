/* Watches events of sandboxes: records that appear and go, processes that end, and the back-ends'
 * own reports. Nothing is polled. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/err.h"
#include "host/common/statedir.h"
#include "host/common/proc.h"
#include "host/kind.h"
#include "proto/json.h"
#include "host/records/record.h"

#define SUFFIX ".json"
#define TELLERS_MAX 16
#define FIXED 3 /* number of descriptors that are watched in any case */
#define AGAIN_MS 1000
#define AGAIN_MOST_MS 60000
#define MESSAGE_MAX 4096

struct watched {
	char *sid;
	struct hr_record record;
	int fd; /* readable when the sandbox's process has ended; -1: there is none any more */
};

/* A back-end that reports events. */
struct teller {
	char name[64];
	struct hr_kind kind;
	pthread_t thread;
	bool started;
	int fd; /* descriptor for messages; borrowed */
};

struct follow {
	const struct hr_config *config;
	const char *state_dir;
	const char *const *env;
	hr_event_fn *fn;
	void *arg;
	int stop; /* result of the last call of fn */
	struct watched *v;
	size_t n, room;
	struct pollfd *polled; /* room for FIXED and all of v */
	struct teller tellers[TELLERS_MAX];
	size_t tellers_n;
	int feed[2]; /* messages from the back-ends' threads */
	int stop_fd; /* when it is readable, the back-ends' threads must end */
	int end_fd;  /* descriptor of the caller; an error on it ends everything */
};

static void
report(struct follow *f, const char *sid, const char *what, const char *detail)
{
	if (f->stop == 0)
		f->stop = f->fn(f->arg, sid, what, detail);
}

/* ---- events of back-ends ---- */

/* Sends a message per event, from the back-end's thread: three C strings. */
static int
pass_on(void *arg, const char *sid, const char *what, const char *detail)
{
	const struct teller *t = arg;
	char text[MESSAGE_MAX];
	int n;

	if (!hr_sid_valid(sid))
		return 0;
	n = snprintf(text, sizeof(text), "%s%c%s%c%s", sid, 0, what, 0, detail);
	if (n < 0 || (size_t)n >= sizeof(text))
		return 0;
	while (send(t->fd, text, (size_t)n + 1, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return -1; /* the reader has ended */
	return 0;
}

/* Restarts events() after an interruption, such as a restart of the Engine, and waits longer each
 * time. */
static void *
listen_to(void *arg)
{
	struct teller *t = arg;
	struct pollfd stop = {.fd = t->kind.host.stop_fd, .events = POLLIN};
	int64_t begun = hr_now_ms();
	int wait_ms = AGAIN_MS;

	while (t->kind.ops->events(t->kind.self, pass_on, t, NULL) != 0) {
		if (hr_now_ms() - begun >= AGAIN_MOST_MS)
			wait_ms = AGAIN_MS; /* resets the delay, since the connection had lasted */
		if (poll(&stop, 1, wait_ms) != 0)
			break;
		wait_ms = 2 * wait_ms < AGAIN_MOST_MS ? 2 * wait_ms : AGAIN_MOST_MS;
		begun = hr_now_ms();
	}
	return NULL;
}

/* Watches a back-end; called for its first sandbox. */
static void
start_listening(struct follow *f, const char *runtime)
{
	struct teller *t = f->tellers_n < TELLERS_MAX ? &f->tellers[f->tellers_n] : NULL;
	size_t i;

	for (i = 0; i < f->tellers_n; i++)
		if (strcmp(f->tellers[i].name, runtime) == 0)
			return;
	if (t == NULL || strlen(runtime) >= sizeof(t->name))
		return;
	/* a back-end that is gone reports nothing */
	if (hr_kind_open(&t->kind, runtime, f->config, f->env, f->state_dir, NULL) != 0)
		return;
	(void)snprintf(t->name, sizeof(t->name), "%s", runtime);
	t->fd = f->feed[1];
	t->kind.host.stop_fd = f->stop_fd;
	t->started =
	    t->kind.ops->events != NULL && hr_thread_start(&t->thread, listen_to, t, NULL) == 0;
	f->tellers_n++;
}

static void
stop_listening(struct follow *f)
{
	size_t i;

	/* the write cannot fail: the counter is far from its limit */
	(void)eventfd_write(f->stop_fd, 1);
	hr_fd_close(&f->feed[0]);
	for (i = 0; i < f->tellers_n; i++) {
		if (f->tellers[i].started)
			(void)pthread_join(f->tellers[i].thread, NULL);
		hr_kind_close(&f->tellers[i].kind);
	}
	hr_fd_close(&f->feed[1]);
	hr_fd_close(&f->stop_fd);
}

static void
from_kinds(struct follow *f)
{
	char text[MESSAGE_MAX + 1];
	const char *what, *detail;
	ssize_t n = hr_fd_read(f->feed[0], text, sizeof(text) - 1);

	if (n <= 0)
		return;
	text[n] = '\0';
	what = text + strlen(text) + 1;
	detail = what + strlen(what) + 1;
	report(f, text, what, detail);
}

/* ---- records ---- */

static struct watched *
find(struct follow *f, const char *sid)
{
	size_t i;

	for (i = 0; i < f->n; i++)
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

/* Opens the record's process. Returns -1 if there is none any more. *ret_why is an errno if it
 * cannot be watched, or 0. */
static int
process_of(const char *record, int *ret_why)
{
	HR_PUT struct json_object *o = NULL;
	int64_t pid = 0;
	int fd = -1;

	*ret_why = 0;
	if (hr_json_decode(record, strlen(record), &o, NULL) == 0)
		pid = hr_json_int_at(o, "pid");
	if (pid > 0 && pid <= INT_MAX) {
		fd = hr_proc_watch((pid_t)pid, (unsigned long long)hr_json_int_at(o, "started"));
		if (fd < 0 && errno != ESRCH)
			*ret_why = errno;
	}
	return fd;
}

/* Returns true for a known record. A record is written several times while a sandbox starts, and is
 * read in its present state: one event may show what the next shows again. */
static bool
is_known(const struct watched *w, const struct hr_record *r)
{
	return w != NULL && w->record.created == r->created &&
	       strcmp(w->record.runtime, r->runtime) == 0 &&
	       strcmp(w->record.backend, r->backend) == 0;
}

static int
make_room(struct follow *f)
{
	size_t room = f->room > 0 ? f->room * 2 : 64;
	struct pollfd *polled = reallocarray(f->polled, room + FIXED, sizeof(*polled));
	struct watched *v;

	if (polled == NULL)
		return -1;
	f->polled = polled;
	v = reallocarray(f->v, room, sizeof(*v));
	if (v == NULL)
		return -1;
	f->v = v;
	f->room = room;
	return 0;
}

static struct watched *
watch_new(struct follow *f, const char *sid)
{
	struct watched w = {.fd = -1};

	if ((f->n == f->room && make_room(f) != 0) || (w.sid = strdup(sid)) == NULL)
		return NULL;
	f->v[f->n] = w;
	return &f->v[f->n++];
}

static void
remember(struct follow *f, const char *sid, bool is_new)
{
	struct hr_record record;
	struct watched *w = find(f, sid);
	struct hr_err e = {0};
	int why;

	if (hr_record_load(f->state_dir, sid, &record, &e) != 0) {
		report(f, sid, "unwatched", e.msg);
		return;
	}
	/* an unready sandbox is recorded again later */
	if (record.runtime == NULL || record.backend == NULL || record.unready ||
	    is_known(w, &record)) {
		hr_record_done(&record);
		return;
	}
	if (w == NULL && (w = watch_new(f, sid)) == NULL) {
		hr_record_done(&record);
		report(f, sid, "unwatched", "out of memory");
		return;
	}
	start_listening(f, record.runtime);
	hr_fd_close(&w->fd);
	hr_record_done(&w->record);
	w->record = record;
	w->fd = process_of(record.backend, &why);
	if (is_new)
		report(f, sid, "up", record.runtime);
	/* the end of the process would go unnoticed */
	if (why != 0)
		report(f, sid, "unwatched", strerror(why));
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

static void known_ones(struct follow *f, bool is_new);

/* Reads all records again after notices were lost. */
static void
rescan_records(struct follow *f)
{
	size_t i;

	for (i = f->n; i-- > 0;) {
		HR_FREE char *path = hr_record_path(f->state_dir, f->v[i].sid, SUFFIX);
		HR_FREE char *sid = strdup(f->v[i].sid);

		if (path == NULL || sid == NULL || access(path, F_OK) == 0)
			continue;
		forget(f, &f->v[i]);
		report(f, sid, "down", "");
	}
	known_ones(f, true);
}

static void
from_records(struct follow *f, int in)
{
	char room[16 * (sizeof(struct inotify_event) + NAME_MAX + 1)]
	    __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = hr_fd_read(in, room, sizeof(room));
	struct inotify_event e;
	char *p;

	for (p = room; n > 0 && p < room + n; p += sizeof(e) + e.len) {
		memcpy(&e, p, sizeof(e));
		if ((e.mask & IN_Q_OVERFLOW) != 0)
			rescan_records(f);
		else if (e.len > 0)
			record_changed(f, p + sizeof(e), (e.mask & IN_DELETE) != 0);
	}
}

static void
known_ones(struct follow *f, bool is_new)
{
	HR_FREE char *text = hr_sandbox_list(f->state_dir, NULL);
	HR_PUT struct json_object *list = NULL;
	size_t i;

	if (text != NULL && hr_json_decode(text, strlen(text), &list, NULL) == 0)
		for (i = 0; i < hr_json_count(list); i++)
			remember(f, hr_json_text_or(hr_json_entry(list, i), "sid", ""), is_new);
}

/* ---- waiting ---- */

static int
wait_once(struct follow *f, int in, struct hr_err *err)
{
	struct pollfd *p = f->polled;
	size_t n = FIXED;
	size_t i;

	p[0] = (struct pollfd){.fd = in, .events = POLLIN};
	p[1] = (struct pollfd){.fd = f->feed[0], .events = POLLIN};
	/* poll() reports only errors for this descriptor */
	p[2] = (struct pollfd){.fd = f->end_fd};
	/* the number of entries is bounded by the process's descriptors */
	for (i = 0; i < f->n; i++)
		if (f->v[i].fd >= 0)
			p[n++] = (struct pollfd){.fd = f->v[i].fd, .events = POLLIN};
	if (poll(p, n, -1) < 0)
		return errno == EINTR ? 0 : hr_err_sys(err, errno, "wait for events");
	for (i = 0, n = FIXED; i < f->n; i++)
		if (f->v[i].fd >= 0 && p[n++].revents != 0) {
			hr_fd_close(&f->v[i].fd);
			report(f, f->v[i].sid, "exited", "");
		}
	if ((p[2].revents & (POLLERR | POLLHUP)) != 0)
		f->stop = 1;
	if (p[1].revents != 0)
		from_kinds(f);
	if (p[0].revents != 0)
		from_records(f, in); /* comes last, because it may change the list */
	return 0;
}

static int
open_all(struct follow *f, int *ret_in, struct hr_err *err)
{
	*ret_in = inotify_init1(IN_CLOEXEC);
	if (*ret_in < 0 || inotify_add_watch(*ret_in, f->state_dir, IN_MOVED_TO | IN_DELETE) < 0)
		return hr_err_sys(err, errno, "watch %s", f->state_dir);
	/* unlike a pipe, a socket does not raise SIGPIPE when its reader is gone */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, f->feed) != 0)
		return hr_err_sys(err, errno, "socketpair");
	f->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return f->stop_fd >= 0 ? 0 : hr_err_sys(err, errno, "eventfd");
}

int
hr_sandbox_events(const struct hr_config *c, const char *state_dir, const char *const *env,
    int end_fd, hr_event_fn *fn, void *arg, struct hr_err *err)
{
	struct follow f = {.config = c,
	    .state_dir = state_dir,
	    .env = env,
	    .fn = fn,
	    .arg = arg,
	    .feed = {-1, -1},
	    .stop_fd = -1,
	    .end_fd = end_fd};
	int r;
	HR_CLOSE int in = -1;

	if (hr_state_directory(state_dir, true, err) != 0)
		return -1;
	r = open_all(&f, &in, err);
	if (r == 0 && make_room(&f) != 0)
		r = hr_err_nomem(err);
	if (r == 0) {
		known_ones(&f, false);
		report(&f, "", "watching", "");
	}
	while (r == 0 && f.stop == 0)
		r = wait_once(&f, in, err);
	while (f.n > 0)
		forget(&f, &f.v[0]);
	free(f.v);
	free(f.polled);
	stop_listening(&f);
	return r;
}
