/* Waits for a pod. A thread watches the pod; at the same time its log is followed for the line by
 * which a server reports that it is ready, since the readiness probe starts after five seconds. The
 * earlier of the two counts. Nothing is polled. */
#include "config.h"

#include "host/kubernetes/kubernetes_int.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/fd.h"
#include "base/text/quote.h"
#include "base/err.h"
#include "host/common/proc.h"
#include "host/kubernetes/why.h"
#include "proto/json.h"

#define READY_TIMEOUT_S 300
#define GONE_TIMEOUT_S 120
#define POD_TIMEOUT_S 30 /* seconds for a Sandbox's controller to make the pod */
#define LAST_LINES "20"
#define LAST_MAX 2000

/* ---- a descriptor that is readable when another one is, or after a time limit ---- */

struct until {
	int both, timer;
};

static void
until_done(struct until *u)
{
	hr_fd_close(&u->both);
	hr_fd_close(&u->timer);
}

static int
until_init(struct until *u, int fd, int stop_fd, unsigned seconds, struct hr_err *err)
{
	struct itimerspec in = {.it_value.tv_sec = seconds};
	struct epoll_event e = {.events = EPOLLIN};

	u->both = epoll_create1(EPOLL_CLOEXEC);
	u->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	if (u->both >= 0 && u->timer >= 0 && timerfd_settime(u->timer, 0, &in, NULL) == 0 &&
	    epoll_ctl(u->both, EPOLL_CTL_ADD, u->timer, &e) == 0 &&
	    (fd < 0 || epoll_ctl(u->both, EPOLL_CTL_ADD, fd, &e) == 0) &&
	    (stop_fd < 0 || epoll_ctl(u->both, EPOLL_CTL_ADD, stop_fd, &e) == 0))
		return 0;
	(void)hr_err_sys(err, errno, "make a timer");
	until_done(u);
	return -1;
}

static bool
until_over(const struct until *u)
{
	uint64_t n;

	return read(u->timer, &n, sizeof(n)) == (ssize_t)sizeof(n);
}

/* ---- the pod's state, as the thread learns it ---- */

struct watcher {
	struct hr_kube kube; /* used by the thread alone */
	char path[512], selector[256];
	int stop_fd, news_fd;
	pthread_t thread;
	bool started;
	/* guarded by the lock */
	pthread_mutex_t lock;
	struct hr_kube_why why; /* latest state of the pod */
	bool seen, gone, over;  /* over: the thread has ended, with *failed */
	bool coming;            /* there was no pod yet, as expected */
	struct hr_err failed;
};

static int
on_event(void *arg, enum hr_kube_event event, struct json_object *o)
{
	struct watcher *w = arg;
	struct hr_kube_why why;
	bool changed = false;

	(void)pthread_mutex_lock(&w->lock);
	switch (event) {
	case HR_KUBE_LIST: w->seen = false; break;
	case HR_KUBE_LISTED:
		w->gone = !w->seen && !w->coming;
		changed = w->gone;
		break;
	case HR_KUBE_DELETED: changed = w->gone = true; break;
	default:
		hr_kube_why(&why, o);
		changed =
		    w->coming || why.progress != w->why.progress || why.unbound != w->why.unbound;
		w->seen = true;
		w->coming = false;
		w->why = why;
		break;
	}
	(void)pthread_mutex_unlock(&w->lock);
	if (changed)
		(void)eventfd_write(w->news_fd, 1);
	return 0;
}

static void *
watch(void *arg)
{
	struct watcher *w = arg;
	struct hr_err e = {0};

	(void)hr_kube_watch(&w->kube, w->path, w->selector, on_event, w, &e);
	(void)pthread_mutex_lock(&w->lock);
	w->over = true;
	w->failed = e;
	(void)pthread_mutex_unlock(&w->lock);
	(void)eventfd_write(w->news_fd, 1);
	return NULL;
}

static void
watcher_stop(struct watcher *w)
{
	if (w->started) {
		(void)eventfd_write(w->stop_fd, 1);
		(void)pthread_join(w->thread, NULL);
	}
	(void)pthread_mutex_destroy(&w->lock);
	hr_kube_done(&w->kube);
	hr_fd_close(&w->stop_fd);
	hr_fd_close(&w->news_fd);
	free(w);
}

static struct watcher *
watcher_start(const struct hr_kubernetes *d, struct hr_err *err)
{
	struct watcher *w = calloc(1, sizeof(*w));

	if (w == NULL)
		return hr_err_null(err);
	(void)pthread_mutex_init(&w->lock, NULL);
	w->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	w->coming = d->agents[0] != '\0';
	hr_kubernetes_path(d, HR_POD, false, w->path);
	(void)snprintf(
	    w->selector, sizeof(w->selector), "fieldSelector=metadata.name%%3D%s", d->name);
	if (hr_kube_init(&w->kube, d->h->config, d->h->environ, 0, err) != 0) {
		watcher_stop(w);
		return NULL;
	}
	hr_kube_give_up(&w->kube, w->stop_fd);
	if (w->stop_fd < 0 || w->news_fd < 0) {
		(void)hr_err_sys(err, errno, "eventfd");
		watcher_stop(w);
		return NULL;
	}
	w->started = hr_thread_start(&w->thread, watch, w, err) == 0;
	if (!w->started) {
		watcher_stop(w);
		return NULL;
	}
	return w;
}

/* ---- the log ---- */

static int
on_line(void *arg, const char *line, size_t len)
{
	static const char *const signs[] = {
	    "ready: listening", "Application startup complete", "Uvicorn running on"};
	bool *ready = arg;
	size_t i;

	for (i = 0; i < sizeof(signs) / sizeof(*signs); i++)
		if (memmem(line, len, signs[i], strlen(signs[i])) != NULL)
			*ready = true;
	return *ready;
}

static int
on_last(void *arg, const char *line, size_t len)
{
	struct hr_buf *b = arg;

	hr_buf_adds(b, "\n");
	hr_quote_text(b, line, len < 300 ? len : 300);
	return 0;
}

/* Notes a warning: only events explain trouble with a node, the image, a volume. */
static int
on_warning(void *arg, struct json_object *o)
{
	struct hr_buf *b = arg;
	const char *text = hr_json_text_or(o, "message", "");

	if (strcmp(hr_json_text_or(o, "type", ""), "Warning") == 0) {
		hr_buf_reset(b);
		hr_buf_addf(b, "\n%.60s: ", hr_json_text_or(o, "reason", ""));
		hr_quote_text(b, text, strnlen(text, 500));
	}
	return 0;
}

/* Appends the best explanation: the last lines of the pod's log, else the last warning. */
static void
last_words(struct hr_kubernetes *d, const struct hr_kube_why *why, struct hr_buf *b)
{
	char path[512], selector[256];

	hr_kubernetes_path(d, HR_POD, true, path);
	if (why->ran)
		(void)hr_kube_logs(
		    &d->kube, path, false, "&tailLines=" LAST_LINES, on_last, b, NULL);
	if (b->len > 0)
		return;
	(void)snprintf(path, sizeof(path), "/api/v1/namespaces/%s/events", d->ns);
	(void)snprintf(
	    selector, sizeof(selector), "fieldSelector=involvedObject.name%%3D%s", d->name);
	(void)hr_kube_list(&d->kube, path, selector, on_warning, b, NULL, 0, NULL);
}

/* ---- ready ---- */

static int
failed(struct hr_kubernetes *d, const struct hr_kube_why *why, const char *fallback,
    struct hr_err *err)
{
	HR_BUF(b, LAST_MAX);

	hr_kube_give_up(&d->kube, -1);
	last_words(d, why, &b);
	return hr_err_set(err, HR_E_DISCONNECTED, "Pod %s: %.560s%.400s", d->name,
	    why->text[0] != '\0' ? why->text : fallback, hr_buf_str(&b));
}

struct waiting {
	struct hr_kubernetes *d;
	struct watcher *w;
	struct until until; /* readable when there is news, or after the time limit */
	bool followed;      /* the log was read to its end once */
	bool told;          /* the message "the pod waits" was logged */
	unsigned place_s;   /* seconds that the pod may wait for a node; 0: none */
};

/* Returns 1 if the pod is ready, 0 to check the news again, -1 if it has failed. */
static int
step(struct waiting *x, struct hr_err *err)
{
	struct watcher *w = x->w;
	struct hr_err e = {0};
	struct hr_kube_why why;
	bool gone, over, ready = false;
	char path[512], text[700];
	eventfd_t n;

	(void)eventfd_read(w->news_fd, &n);
	(void)pthread_mutex_lock(&w->lock);
	why = w->why;
	gone = w->gone;
	over = w->over;
	if (over)
		e = w->failed;
	(void)pthread_mutex_unlock(&w->lock);
	if (gone)
		return hr_err_set(
		    err, HR_E_DISCONNECTED, "Pod %s is gone: it was deleted", x->d->name);
	if (over) {
		*err = e;
		return -1;
	}
	if (x->d->no_class && why.unbound)
		return failed(x->d, &why, "its claim is bound to no volume", err);
	switch (why.progress) {
	case HR_KUBE_READY: return 1;
	case HR_KUBE_ENDING:
	case HR_KUBE_FAILED: return failed(x->d, &why, "it has failed", err);
	case HR_KUBE_STUCK:
		if (x->place_s == 0)
			return failed(x->d, &why, "", err);
		if (!x->told) {
			(void)snprintf(text, sizeof(text), "the pod waits: %s", why.text);
			x->d->h->log(x->d->h->arg, text);
		}
		x->told = true;
		break;
	case HR_KUBE_RUNNING:
		if (x->followed)
			break;
		hr_kubernetes_path(x->d, HR_POD, true, path);
		(void)hr_kube_logs(&x->d->kube, path, true, "", on_line, &ready, &e);
		/* the probe decides if there is no right to read logs */
		x->followed = x->d->kube.status.code != 0;
		if (ready)
			return 1;
		break;
	default: break;
	}
	return 0;
}

static int
wait_all(struct waiting *x, struct hr_err *err)
{
	struct hr_kube_why why;
	struct epoll_event e;
	int r = 0;

	while (r == 0) {
		/* the descriptor stays readable until step() reads it, or for ever after the time
		 * limit */
		while (epoll_wait(x->until.both, &e, 1, -1) < 0 && errno == EINTR)
			;
		if (until_over(&x->until)) {
			(void)pthread_mutex_lock(&x->w->lock);
			why = x->w->why;
			(void)pthread_mutex_unlock(&x->w->lock);
			return failed(x->d, &why, "it is not ready after 300 seconds", err);
		}
		if (hr_fd_is_readable(x->d->h->stop_fd))
			return hr_err_set(
			    err, HR_E_RUNTIME, "stopped while Pod %s was not ready", x->d->name);
		r = step(x, err);
	}
	return r == 1 ? 0 : -1;
}

/* ---- the pod of a Sandbox ---- */

struct owner {
	bool gone;
	char why[500]; /* the controller's latest reason for the missing pod */
};

/* Returns non-zero for a permanent refusal of the API server, such as an exhausted quota. */
static int
on_owner(void *arg, enum hr_kube_event event, struct json_object *o)
{
	struct json_object *list = hr_json_at(hr_json_at(o, "status"), "conditions"), *one;
	struct owner *w = arg;
	const char *text;
	size_t i;

	if (event == HR_KUBE_DELETED)
		w->gone = true;
	for (i = 0; event == HR_KUBE_THERE && i < hr_json_count(list); i++) {
		one = hr_json_entry(list, i);
		text = hr_json_text_or(one, "message", "");
		if (strcmp(hr_json_text_or(one, "type", ""), "Ready") != 0 || *text == '\0')
			continue;
		(void)snprintf(w->why, sizeof(w->why), "%s", text);
		if (strcmp(hr_json_text_or(one, "reason", ""), "ReconcilerError") == 0 &&
		    (strstr(text, " is forbidden: ") != NULL ||
			strstr(text, " is invalid: ") != NULL))
			return 1;
	}
	return w->gone;
}

static int
no_pod(const struct waiting *x, const struct owner *w, struct hr_err *err)
{
	const char *name = x->d->name;
	HR_BUF(b, LAST_MAX);

	if (w->gone)
		return hr_err_set(
		    err, HR_E_DISCONNECTED, "Sandbox %s is gone: it was deleted", name);
	hr_quote_text(&b, w->why, strlen(w->why));
	return hr_err_set(err, HR_E_DISCONNECTED, "Sandbox %s has no pod: %.600s", name,
	    b.len > 0 ? hr_buf_str(&b)
		      : "no pod was made within 30 seconds; check that the controller of "
			"agent-sandbox runs");
}

/* Waits for the pod of a Sandbox; without one, *err has the reason from the Sandbox's status. */
static int
wait_pod(struct waiting *x, struct hr_err *err)
{
	struct owner owner = {.gone = false};
	struct watcher *w = x->w;
	struct hr_kubernetes *d = x->d;
	char path[512], selector[256];
	bool coming, over;
	int r;

	if (until_init(&x->until, w->news_fd, d->h->stop_fd, POD_TIMEOUT_S, err) != 0)
		return -1;
	hr_kubernetes_path(d, HR_SANDBOX, false, path);
	(void)snprintf(selector, sizeof(selector), "fieldSelector=metadata.name%%3D%s", d->name);
	hr_kube_give_up(&d->kube, x->until.both);
	r = hr_kube_watch(&d->kube, path, selector, on_owner, &owner, err);
	hr_kube_give_up(&d->kube, -1);
	(void)pthread_mutex_lock(&w->lock);
	coming = w->coming;
	over = w->over;
	(void)pthread_mutex_unlock(&w->lock);
	/* a pod reports its own state; wait_all() handles a failed watch */
	if (!coming || over)
		r = 0;
	else if (hr_fd_is_readable(d->h->stop_fd))
		r = hr_err_set(err, HR_E_RUNTIME, "stopped while there was no pod %s", d->name);
	else if (r > 0 || until_over(&x->until))
		r = no_pod(x, &owner, err);
	until_done(&x->until);
	return r;
}

int
hr_kubernetes_wait_ready(struct hr_kubernetes *d, struct hr_err *err)
{
	long long place = hr_config_int(d->h->config, "kubernetes.schedule_timeout");
	struct waiting x = {.d = d, .place_s = place > 0 ? (unsigned)place : 0};
	struct hr_err mine;
	int r = -1;

	err = err != NULL ? err : &mine;
	x.w = watcher_start(d, err);
	if (x.w == NULL)
		return -1;
	if ((d->agents[0] == '\0' || wait_pod(&x, err) == 0) &&
	    until_init(&x.until, x.w->news_fd, d->h->stop_fd, READY_TIMEOUT_S + x.place_s, err) ==
		0) {
		hr_kube_give_up(&d->kube, x.until.both);
		r = wait_all(&x, err);
		hr_kube_give_up(&d->kube, -1);
		until_done(&x.until);
	}
	watcher_stop(x.w);
	return r;
}

/* ---- gone ---- */

struct leaving {
	const char *uid; /* "": any object of the name */
	bool seen;
};

static int
on_leaving(void *arg, enum hr_kube_event event, struct json_object *o)
{
	struct leaving *l = arg;
	char uid[HR_KUBERNETES_UID] = "";
	bool meant;

	hr_kubernetes_uid(o, uid);
	meant = *l->uid == '\0' || strcmp(uid, l->uid) == 0;
	switch (event) {
	case HR_KUBE_LIST: l->seen = false; return 0;
	case HR_KUBE_LISTED: return !l->seen;
	case HR_KUBE_DELETED: return meant;
	default: l->seen = l->seen || meant; return 0;
	}
}

int
hr_kubernetes_wait_gone(
    struct hr_kubernetes *d, enum hr_kubernetes_what what, const char *uid, struct hr_err *err)
{
	struct leaving l = {.uid = uid};
	char path[512], one[512], selector[256];
	HR_CLEAN(until_done) struct until until = {.timer = -1, .both = -1};
	int r;

	hr_kubernetes_path(d, what, false, path);
	hr_kubernetes_path(d, what, true, one);
	(void)snprintf(
	    selector, sizeof(selector), "fieldSelector=metadata.name%%3D%s", strrchr(one, '/') + 1);
	if (until_init(&until, -1, -1, GONE_TIMEOUT_S, err) != 0)
		return -1;
	hr_kube_give_up(&d->kube, until.both);
	r = hr_kube_watch(&d->kube, path, selector, on_leaving, &l, err);
	if (r < 0 && until_over(&until))
		(void)hr_err_set(err, HR_E_RUNTIME_TIMEOUT,
		    "the %s %s is still being deleted: check its finalizers",
		    hr_kubernetes_kind(what), strrchr(one, '/') + 1);
	hr_kube_give_up(&d->kube, -1);
	return r < 0 ? -1 : 0;
}
