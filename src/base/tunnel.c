/* Carries bytes. Invariant: a direction is read exactly while its bytes have a place to go, and
 * written exactly while it has bytes that the receiver did not take. */
#include "config.h"

#include "base/tunnel.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/loop.h"

#define KEPT_MAX (2 * HR_TUNNEL_PIECE + 1)

struct way {
	struct hr_watch *readable, *writable;
	int from, to;       /* -1: none yet */
	struct hr_buf kept; /* bytes that are not sent yet */
	bool drops;         /* the bytes go nowhere */
	bool ended;         /* there are no more bytes to read */
	bool done;          /* the receiver knows the end */
};

struct hr_tunnel {
	struct hr_loop *loop;
	struct hr_tunnel_with with;
	struct hr_watch *idle; /* armed after the end of one direction */
	int idle_ms;
	int client, server;
	bool looks;  /* the client's bytes are not for the server yet */
	bool waits;  /* not even read */
	bool broken; /* a connection was reset */
	bool busy;   /* the owner is called, so that nothing is freed */
	bool over;   /* freed as soon as that is over */
	struct way up, down;
};

/* One piece for all tunnels: a process has one loop. */
static char piece[HR_TUNNEL_PIECE];

static void
free_now(struct hr_tunnel *t)
{
	const struct linger none = {.l_onoff = 1};
	struct way *ways[] = {&t->up, &t->down};
	size_t i;

	for (i = 0; i < 2; i++) {
		hr_watch_free(ways[i]->readable);
		hr_watch_free(ways[i]->writable);
		hr_buf_done(&ways[i]->kept);
	}
	hr_watch_free(t->idle);
	if (t->broken) {
		(void)setsockopt(t->client, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
		if (t->server >= 0)
			(void)setsockopt(t->server, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	}
	hr_fd_close(&t->client);
	hr_fd_close(&t->server);
	free(t);
}

void
hr_tunnel_free(struct hr_tunnel *t)
{
	if (t != NULL && t->busy)
		t->over = true;
	else if (t != NULL)
		free_now(t);
}

void
hr_tunnel_reset(struct hr_tunnel *t)
{
	t->broken = true;
	hr_tunnel_free(t);
}

/* Ends the tunnel for its owner, too. */
static void
end(struct hr_tunnel *t, bool broken)
{
	t->broken = t->broken || (broken && t->with.resets);
	t->busy = true;
	t->with.ended(t->with.arg);
	free_now(t);
}

static void
on_idle(void *arg)
{
	end(arg, false);
}

/* Frees what is kept, so that an idle tunnel has no buffers. */
static void
forget(struct way *w)
{
	size_t cap = w->kept.cap;

	hr_buf_done(&w->kept);
	hr_buf_init(&w->kept, cap);
}

/* Returns 1 when all kept bytes are sent, 0 if the receiver is slow, -1 if it is gone. */
static int
send_kept(struct way *w)
{
	size_t at = 0;
	ssize_t n;
	int r = 1;

	while (at < w->kept.len && r > 0) {
		n = send(w->to, w->kept.p + at, w->kept.len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0)
			at += (size_t)n;
		else if (errno != EINTR)
			r = errno == EAGAIN ? 0 : -1;
	}
	if (r > 0)
		forget(w);
	else
		hr_buf_drop_front(&w->kept, at);
	return r;
}

/* Sends a piece that was read, and keeps the rest. Returns as send_kept(). */
static int
pass(struct way *w, const char *p, size_t len)
{
	ssize_t n;

	do {
		n = send(w->to, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno != EAGAIN)
		return -1;
	if (n == (ssize_t)len)
		return 1;
	n = n < 0 ? 0 : n;
	hr_buf_add(&w->kept, p + n, len - (size_t)n);
	return hr_buf_check(&w->kept, NULL);
}

static void on_up(void *arg);
static void on_down(void *arg);
static void on_up_room(void *arg);
static void on_down_room(void *arg);

static bool
watch(struct hr_tunnel *t, struct hr_watch **w, bool want, bool reads, int fd, hr_watch_fn *fn)
{
	if (!want) {
		hr_watch_drop(w);
	} else if (*w == NULL) {
		*w = (reads ? hr_loop_readable : hr_loop_writable)(t->loop, fd, fn, t, NULL);
		return *w != NULL;
	}
	return true;
}

/* Waits for what the direction needs next. Returns false without memory. */
static bool
settle(struct hr_tunnel *t, struct way *w)
{
	bool up = w == &t->up, looks = up && t->looks;
	bool out = w->to >= 0 && w->kept.len > 0 && !looks;
	bool in = w->from >= 0 && !w->ended &&
		  (looks ? !t->waits : w->drops || (w->to >= 0 && w->kept.len == 0));

	return watch(t, &w->readable, in, true, w->from, up ? on_up : on_down) &&
	       watch(t, &w->writable, out, false, w->to, up ? on_up_room : on_down_room);
}

/* Passes the end of a direction on, or that of the tunnel. Ends the tunnel at its second one.
 * Returns false if the tunnel is gone. */
static bool
pass_end(struct hr_tunnel *t, struct way *w)
{
	if (!w->ended || w->done || w->kept.len > 0 || (w == &t->up && t->looks) ||
	    (w->to < 0 && !w->drops))
		return true;
	w->done = true;
	if (t->up.done && t->down.done) {
		end(t, false);
		return false;
	}
	if (t->broken && w == &t->down) {
		end(t, true);
		return false;
	}
	if (!w->drops)
		(void)shutdown(w->to, SHUT_WR);
	t->idle_ms = w == &t->down ? t->with.linger_ms : t->with.half_ms;
	(void)hr_watch_arm(t->idle, t->idle_ms, NULL);
	return true;
}

/* Finishes a step of a direction; `r` is the result of sending. */
static void
after(struct hr_tunnel *t, struct way *w, int r)
{
	if (r < 0 && w == &t->up && !t->down.done) {
		/* the server has closed: its answer may still come */
		t->broken = t->with.resets;
		w->drops = true;
		forget(w);
	} else if (r < 0) {
		end(t, true);
		return;
	}
	if (!pass_end(t, w))
		return;
	if (t->idle_ms > 0 && !w->drops)
		(void)hr_watch_arm(t->idle, t->idle_ms, NULL);
	if (!settle(t, w))
		end(t, true);
}

/* Lets the owner look at the first bytes. Returns false if the tunnel is gone. */
static bool
look(struct hr_tunnel *t)
{
	struct way *w = &t->up;
	bool last = w->ended || w->kept.len >= HR_TUNNEL_PIECE;
	enum hr_tunnel_look verdict;

	t->busy = true;
	verdict = t->with.look(t->with.arg, hr_buf_str(&w->kept), w->kept.len, last);
	t->busy = false;
	if (t->over) {
		free_now(t);
		return false;
	}
	if (verdict == HR_TUNNEL_MORE && (w->ended || w->kept.len >= HR_TUNNEL_PIECE)) {
		end(t, false);
		return false;
	}
	t->waits = verdict == HR_TUNNEL_WAIT;
	if (verdict == HR_TUNNEL_PASS)
		t->looks = false;
	return true;
}

/* Carries what the client's direction has kept, after a change. */
static void
go_up(struct hr_tunnel *t)
{
	struct way *w = &t->up;

	/* the server may be what the owner waits for */
	if (t->looks && t->waits && t->server >= 0 && !look(t))
		return;
	if (settle(t, &t->down))
		after(t, w, w->to >= 0 && !t->looks && !w->drops ? send_kept(w) : 0);
	else
		end(t, true);
}

/* Reads once. Returns false if the connection is broken. */
static bool
receive(struct way *w, char *p, size_t room, size_t *ret)
{
	ssize_t n = recv(w->from, p, room, MSG_DONTWAIT);

	*ret = n > 0 ? (size_t)n : 0;
	w->ended = w->ended || n == 0;
	return n >= 0 || errno == EAGAIN || errno == EINTR;
}

static void
step(struct hr_tunnel *t, struct way *w)
{
	char *p = piece;
	size_t room = sizeof(piece), n;
	bool looks = w == &t->up && t->looks;

	if (looks) {
		room = HR_TUNNEL_PIECE - w->kept.len;
		p = hr_buf_reserve(&w->kept, room);
	}
	if (p == NULL || !receive(w, p, room, &n)) {
		end(t, true);
	} else if (looks) {
		hr_buf_grew(&w->kept, n);
		if ((n > 0 || w->ended) && look(t))
			go_up(t);
	} else {
		after(t, w, n > 0 && !w->drops ? pass(w, p, n) : 1);
	}
}

static void
on_up(void *arg)
{
	struct hr_tunnel *t = arg;

	step(t, &t->up);
}

static void
on_down(void *arg)
{
	struct hr_tunnel *t = arg;

	step(t, &t->down);
}

static void
on_up_room(void *arg)
{
	struct hr_tunnel *t = arg;

	after(t, &t->up, send_kept(&t->up));
}

static void
on_down_room(void *arg)
{
	struct hr_tunnel *t = arg;

	after(t, &t->down, send_kept(&t->down));
}

/* Sends bytes as they come: with Nagle's algorithm the second piece of an answer waits 40 ms for
 * the receiver's acknowledgement of the first one. This fails for other sockets than TCP's alone.
 */
static void
send_at_once(int fd)
{
	const int one = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

struct hr_tunnel *
hr_tunnel_new(struct hr_loop *loop, const struct hr_tunnel_with *with, struct hr_err *err)
{
	struct hr_tunnel *t = calloc(1, sizeof(*t));

	if (t == NULL)
		return hr_err_null(err);
	t->loop = loop;
	t->with = *with;
	t->client = t->up.from = t->down.to = with->client;
	t->server = t->up.to = t->down.from = -1;
	t->looks = true;
	hr_buf_init(&t->up.kept, KEPT_MAX);
	hr_buf_init(&t->down.kept, with->room > 0 ? with->room : KEPT_MAX);
	t->idle = hr_loop_timer(loop, on_idle, t, err);
	if (t->idle == NULL || !settle(t, &t->up)) {
		t->client = -1;
		free_now(t);
		return hr_err_null(err);
	}
	send_at_once(with->client);
	return t;
}

void
hr_tunnel_no_resets(struct hr_tunnel *t)
{
	t->with.resets = false;
}

void
hr_tunnel_lead(struct hr_tunnel *t, int server)
{
	send_at_once(server);
	t->server = t->up.to = t->down.from = server;
	if (!t->busy)
		go_up(t);
}

void
hr_tunnel_skip(struct hr_tunnel *t, size_t n)
{
	hr_buf_drop_front(&t->up.kept, n);
}

int
hr_tunnel_replace(struct hr_tunnel *t, size_t n, const void *p, size_t len)
{
	HR_BUF(rest, KEPT_MAX);

	hr_buf_add(&rest, t->up.kept.p + n, t->up.kept.len - n);
	hr_buf_reset(&t->up.kept);
	hr_buf_add(&t->up.kept, p, len);
	hr_buf_add(&t->up.kept, rest.p, rest.len);
	return hr_buf_check(&rest, NULL) < 0 ? -1 : hr_buf_check(&t->up.kept, NULL);
}

int
hr_tunnel_say(struct hr_tunnel *t, const void *p, size_t n)
{
	hr_buf_add(&t->down.kept, p, n);
	if (hr_buf_check(&t->down.kept, NULL) < 0 || send_kept(&t->down) < 0)
		return -1;
	return settle(t, &t->down) ? 0 : -1;
}

void
hr_tunnel_answer(struct hr_tunnel *t, const void *p, size_t n)
{
	t->looks = false;
	t->up.drops = true;
	t->down.ended = true;
	forget(&t->up);
	if (hr_tunnel_say(t, p, n) < 0 || !pass_end(t, &t->down) || !settle(t, &t->up) ||
	    t->up.ended)
		(void)hr_watch_arm(t->idle, 0, NULL);
	else
		(void)hr_watch_arm(t->idle, t->with.linger_ms, NULL);
}
