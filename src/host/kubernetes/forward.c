/* Forwards a port by WebSocket: messages start with a byte for their channel, 0 for data, 1 for an
 * error; the first message of each channel is the port. */
#include "config.h"

#include "host/kubernetes/forward.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/text/quote.h"
#include "base/err.h"
#include "host/common/proc.h"
#include "host/kubernetes/kube.h"
#include "host/kubernetes/why.h"
#include "proto/json.h"

#define CONNECTIONS 16
#define PIECE 32768
/* maximum bytes per direction: no more is read before they are sent */
#define BACKLOG (1u << 20)
#define TO_LOCAL_MAX (8u << 20)
#define PATIENCE_MS 60000
#define WAIT_MS 500
#define CALL_MS 5000
/* ms that an early connection is kept: a server ends one that stays unused */
#define AHEAD_MS 5000
#define PROTOCOL "v4.channel.k8s.io"

struct carried {
	int local; /* -1: the slot is free */
	/* busy: a thread opens the pod's side, or asks why it ended, and owns this slot meanwhile;
	 * done: it has finished */
	bool busy, done;
	struct hr_forward *f;
	pthread_t thread;
	struct hr_err why;    /* error to explain; HR_OK: open the connection */
	struct hr_ws *opened; /* result of that thread; NULL: text has the reason */
	char text[1200];
	struct hr_ws *ws;
	struct hr_buf to_local;
	bool named[2]; /* the first message of a channel was received */
	bool answered; /* data from the pod was sent to the local side */
	bool ending;   /* no more data from the pod will come */
};

struct hr_forward {
	const struct hr_config *config;
	const char *const *environ;
	struct hr_kube kube;  /* used with the lock held */
	pthread_mutex_t lock; /* a thread that does not get the lock makes its own kube */
	int news_fd;          /* eventfd that reports that a thread of a slot is done */
	char *pod_path;
	int port, listener, at; /* O_PATH descriptor of the local socket (at), which is unlinked */
	int stop_fd;
	char socket[40];
	pthread_t thread;
	bool started, early;
	struct hr_ws *ahead; /* connection opened in advance for the first client */
	int64_t ahead_ms;
	struct carried v[CONNECTIONS];
};

static void
drop(struct carried *c)
{
	hr_fd_close(&c->local);
	hr_ws_free(c->ws);
	hr_buf_done(&c->to_local);
	*c = (struct carried){.local = -1};
}

/* ---- failures ---- */

/* Sends the answer, which is short, unless the client closes first. */
static void
answer_503(struct carried *c, const char *why)
{
	HR_BUF(body, 65536);
	HR_BUF(text, 65536);

	hr_buf_adds(&body, "{\"detail\":");
	hr_quote_json(&body, why, strlen(why));
	hr_buf_addc(&body, '}');
	hr_buf_addf(&text,
	    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\n"
	    "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
	    body.len, hr_buf_str(&body));
	hr_buf_reset(&c->to_local);
	hr_buf_add(&c->to_local, hr_buf_str(&text), text.len);
	c->ending = true;
}

/* Asks for the pod's own explanation; text NULL: it is not needed. */
static void
reason(struct hr_forward *f, struct hr_kube *k, const struct hr_err *e, char *text, size_t cap)
{
	const char *name = strrchr(f->pod_path, '/') + 1;
	HR_PUT struct json_object *pod = NULL;
	struct hr_kube_why why;

	(void)snprintf(text, cap, "%s", e->msg);
	if (hr_kube_call(k, HR_KUBE_GET, f->pod_path, NULL, &pod, NULL) == 0) {
		hr_kube_why(&why, pod);
		if (why.text[0] != '\0')
			(void)snprintf(text, cap, "the pod %s: %s", name, why.text);
	} else if (k->status.code == 404) {
		(void)snprintf(text, cap,
		    "the pod %s does not exist: it was paused or deleted; \"handrail resume\" "
		    "continues a paused sandbox",
		    name);
	}
}

/* ---- the pod's side ---- */

static struct hr_ws *
socket_of_pod(struct hr_forward *f, struct hr_kube *k, struct hr_err *err)
{
	char path[640];

	(void)snprintf(path, sizeof(path), "%s/portforward?ports=%d", f->pod_path, f->port);
	return hr_kube_socket(k, path, PROTOCOL, err);
}

static void
open_pod(struct hr_forward *f, struct hr_kube *k, struct carried *c)
{
	int64_t end = hr_now_ms() + PATIENCE_MS;
	struct hr_err e = c->why;

	if (e.code == HR_OK) {
		do {
			c->opened = socket_of_pod(f, k, &e);
			if (c->opened != NULL)
				return;
			/* there is no answer, or the server is temporarily unable */
		} while ((k->status.code == 0 || k->status.code == 429 || k->status.code == 503) &&
			 e.code == HR_E_UNAVAILABLE && hr_now_ms() < end &&
			 !hr_rest_wait(f->stop_fd, WAIT_MS));
	}
	reason(f, k, &e, c->text, sizeof(c->text));
}

static void *
slot_thread(void *arg)
{
	struct carried *c = arg;
	struct hr_forward *f = c->f;
	HR_CLEAN(hr_kube_done) struct hr_kube own = {.watch_fd = -1};
	struct hr_err e = {0};

	if (pthread_mutex_trylock(&f->lock) == 0) {
		open_pod(f, &f->kube, c);
		(void)pthread_mutex_unlock(&f->lock);
	} else if (hr_kube_init(&own, f->config, f->environ, CALL_MS, &e) == 0) {
		hr_kube_give_up(&own, f->stop_fd);
		open_pod(f, &own, c);
	} else {
		(void)snprintf(c->text, sizeof(c->text), "%s", e.msg);
	}
	__atomic_store_n(&c->done, true, __ATOMIC_RELEASE);
	(void)eventfd_write(f->news_fd, 1);
	return NULL;
}

/* Starts a thread, because the API server may be slow and other connections must not wait. `why` is
 * the error to explain; NULL: open the pod's side. */
static void
ask_beside(struct hr_forward *f, struct carried *c, const struct hr_err *why)
{
	struct hr_err e = {0};

	c->f = f;
	c->why = why != NULL ? *why : (struct hr_err){0};
	c->busy = hr_thread_start(&c->thread, slot_thread, c, &e) == 0;
	if (!c->busy)
		answer_503(c, e.msg);
}

struct inbox {
	struct hr_forward *f;
	struct carried *c;
};

static int
on_message(void *arg, enum hr_ws_op op, const char *p, size_t len)
{
	const struct inbox *in = arg;
	struct carried *c = in->c;
	struct hr_err e = {0};
	unsigned channel;

	(void)op;
	if (len == 0 || (unsigned char)*p > 1)
		return 0;
	channel = (unsigned char)*p++;
	len--;
	if (!c->named[channel]) {
		c->named[channel] = true;
		return 0;
	}
	if (channel == 0) {
		c->answered |= len > 0;
		hr_buf_add(&c->to_local, p, len);
		return hr_buf_check(&c->to_local, NULL) != 0;
	}
	c->ending = c->answered;
	if (!c->answered) {
		(void)hr_err_set(&e, HR_E_UNAVAILABLE, "%.*s", (int)len, p);
		ask_beside(in->f, c, &e);
	}
	return 1;
}

static void
from_pod(struct hr_forward *f, struct carried *c)
{
	struct inbox in = {f, c};

	if (hr_ws_receive(c->ws, on_message, &in, NULL) == 0)
		return;
	hr_ws_free(c->ws);
	c->ws = NULL;
	c->ending |= !c->busy;
}

/* Collects the results of the slots' threads. */
static void
take_over(struct hr_forward *f)
{
	struct carried *c;
	eventfd_t n;

	(void)eventfd_read(f->news_fd, &n);
	for (c = f->v; c < f->v + CONNECTIONS; c++) {
		if (!c->busy || !__atomic_load_n(&c->done, __ATOMIC_ACQUIRE))
			continue;
		(void)pthread_join(c->thread, NULL);
		c->busy = c->done = false;
		c->ws = c->opened;
		c->opened = NULL;
		/* data that came with the response's head are buffered: poll does not report
		 * them */
		if (c->ws != NULL)
			from_pod(f, c);
		else
			answer_503(c, c->text);
	}
}

/* ---- the local side ---- */

static void
to_pod(struct carried *c)
{
	char piece[PIECE + 1];
	ssize_t n = hr_fd_read(c->local, piece + 1, PIECE);

	if (n < 0 && errno == EAGAIN)
		return;
	piece[0] = 0;
	if (n <= 0 || hr_ws_send(c->ws, HR_WS_BINARY, piece, (size_t)n + 1, NULL) != 0)
		drop(c);
}

/* Returns false if the local reader is gone. */
static bool
to_local(struct carried *c)
{
	ssize_t n;

	while (c->to_local.len > 0) {
		n = send(c->local, c->to_local.p, c->to_local.len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		hr_buf_drop_front(&c->to_local, (size_t)n);
	}
	return true;
}

static void
accept_one(struct hr_forward *f)
{
	int fd = hr_fd_accept(f->listener, SOCK_NONBLOCK, f->stop_fd);
	size_t i;

	for (i = 0; fd >= 0 && i < CONNECTIONS; i++) {
		struct carried *c = &f->v[i];

		if (c->local >= 0)
			continue;
		*c = (struct carried){.local = fd};
		hr_buf_init(&c->to_local, TO_LOCAL_MAX);
		if (f->ahead != NULL && hr_now_ms() - f->ahead_ms < AHEAD_MS)
			c->ws = f->ahead;
		else
			hr_ws_free(f->ahead);
		f->ahead = NULL;
		if (c->ws != NULL)
			from_pod(f, c);
		else
			ask_beside(f, c, NULL);
		return;
	}
	hr_fd_close(&fd);
}

static void
settle(struct carried *c)
{
	if (c->local < 0 || c->busy)
		return;
	if (!to_local(c) || (c->ending && c->to_local.len == 0) ||
	    (c->ws != NULL && hr_ws_flush(c->ws, NULL) != 0))
		drop(c);
}

static void *
carry(void *arg)
{
	struct hr_forward *f = arg;
	struct pollfd p[3 + 2 * CONNECTIONS];
	struct carried *c;
	struct hr_err e = {0};
	size_t room;

	/* ignored, since the next connection fails in the same way and reports the reason */
	if (f->early)
		f->ahead = socket_of_pod(f, &f->kube, &e);
	f->ahead_ms = hr_now_ms();
	for (;;) {
		size_t i;

		p[0] = (struct pollfd){.fd = f->stop_fd, .events = POLLIN};
		p[2 + 2 * CONNECTIONS] = (struct pollfd){.fd = f->news_fd, .events = POLLIN};
		room = 0;
		for (i = 0; i < CONNECTIONS; i++) {
			c = &f->v[i];
			p[2 + 2 * i] = (struct pollfd){.fd = c->busy ? -1 : c->local};
			p[3 + 2 * i] = (struct pollfd){.fd = c->ws != NULL ? hr_ws_fd(c->ws) : -1};
			room += c->local < 0;
			if (c->local < 0 || c->busy)
				continue;
			if (c->ws != NULL && hr_ws_backlog(c->ws) < BACKLOG)
				p[2 + 2 * i].events |= POLLIN;
			if (c->to_local.len > 0)
				p[2 + 2 * i].events |= POLLOUT;
			if (c->ws != NULL)
				p[3 + 2 * i].events = hr_ws_events(c->ws);
			if (c->to_local.len >= BACKLOG)
				p[3 + 2 * i].events &= ~POLLIN;
		}
		p[1] = (struct pollfd){.fd = room > 0 ? f->listener : -1, .events = POLLIN};
		if (poll(p, 3 + 2 * CONNECTIONS, -1) < 0 && errno != EINTR)
			return NULL;
		if (p[0].revents != 0)
			return NULL;
		if (p[2 + 2 * CONNECTIONS].revents != 0)
			take_over(f);
		for (i = 0; i < CONNECTIONS; i++) {
			c = &f->v[i];
			if (c->ws != NULL && (p[3 + 2 * i].revents & ~POLLOUT) != 0)
				from_pod(f, c);
			if (c->ws != NULL && (p[2 + 2 * i].revents & ~POLLOUT) != 0)
				to_pod(c);
			settle(c);
		}
		if (p[1].revents != 0)
			accept_one(f);
	}
}

/* ---- the local socket ---- */

/* Binds the socket in a temporary directory and unlinks it; /proc leads to it as long as it is
 * open. */
static int
listen_nowhere(struct hr_forward *f, struct hr_err *err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char dir[] = "/tmp/handrail-forward-XXXXXX";
	int r = -1;

	if (mkdtemp(dir) == NULL)
		return hr_err_sys(err, errno, "make a directory in /tmp");
	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s/s", dir);
	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (f->listener >= 0 && bind(f->listener, (struct sockaddr *)&a, sizeof(a)) == 0 &&
	    listen(f->listener, CONNECTIONS) == 0) {
		f->at = open(a.sun_path, O_PATH | O_CLOEXEC);
		r = f->at >= 0 ? 0 : -1;
	}
	if (r != 0)
		r = hr_err_sys(err, errno, "make a socket in %s", dir);
	(void)unlink(a.sun_path);
	(void)rmdir(dir);
	(void)snprintf(f->socket, sizeof(f->socket), "/proc/self/fd/%d", f->at);
	return r;
}

struct hr_forward *
hr_forward_new(const struct hr_config *c, const char *const *env, const char *pod_path, int port,
    bool early, struct hr_err *err)
{
	struct hr_forward *f = calloc(1, sizeof(*f));
	size_t i;

	if (f == NULL)
		return hr_err_null(err);
	f->listener = f->at = f->stop_fd = f->news_fd = -1;
	f->config = c;
	f->environ = env;
	(void)pthread_mutex_init(&f->lock, NULL);
	f->port = port;
	f->early = early;
	for (i = 0; i < CONNECTIONS; i++)
		f->v[i].local = -1;
	if (hr_kube_init(&f->kube, c, env, CALL_MS, err) != 0) {
		hr_forward_drop(&f);
		return NULL;
	}
	f->pod_path = strdup(pod_path);
	f->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	f->news_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (f->pod_path == NULL)
		(void)hr_err_nomem(err);
	else if (f->stop_fd < 0 || f->news_fd < 0)
		(void)hr_err_sys(err, errno, "eventfd");
	if (f->pod_path != NULL && f->stop_fd >= 0 && f->news_fd >= 0) {
		hr_kube_give_up(&f->kube, f->stop_fd);
		f->started =
		    listen_nowhere(f, err) == 0 && hr_thread_start(&f->thread, carry, f, err) == 0;
		if (f->started)
			return f;
	}
	hr_forward_drop(&f);
	return NULL;
}

void
hr_forward_drop(struct hr_forward **io)
{
	struct hr_forward *f = *io;
	size_t i;

	if (f == NULL)
		return;
	*io = NULL;
	/* the write cannot fail: the counter is far from its limit */
	if (f->started) {
		(void)eventfd_write(f->stop_fd, 1);
		(void)pthread_join(f->thread, NULL);
	}
	for (i = 0; i < CONNECTIONS; i++) {
		if (f->v[i].busy)
			(void)pthread_join(f->v[i].thread, NULL);
		hr_ws_free(f->v[i].opened);
		drop(&f->v[i]);
	}
	(void)pthread_mutex_destroy(&f->lock);
	hr_fd_close(&f->news_fd);
	hr_ws_free(f->ahead);
	hr_kube_done(&f->kube);
	hr_fd_close(&f->listener);
	hr_fd_close(&f->at);
	hr_fd_close(&f->stop_fd);
	free(f->pod_path);
	free(f);
}

const char *
hr_forward_socket(const struct hr_forward *f)
{
	return f->socket;
}
