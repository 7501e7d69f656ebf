/* Serves WebSockets. Invariant: a connection is freed by its own callbacks only after it has been
 * taken off the list, and no callback of the caller's runs for it then. */
#include "config.h"

#include "http/wsserve.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/flush.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/text/utf8.h"
#include "http/wsframe.h"

#define HEAD_MAX (64u << 10)
#define OUT_MAX (64u << 20)
#define PIECE (64u << 10)
#define FIRST_MAX (16u << 10)
#define SLOW_MS 10000 /* limit of a request, and of a connection's end */
#define KEY_LEN 24    /* characters of 16 bytes in Base64 */

struct hr_wsconn {
	TAILQ_ENTRY(hr_wsconn) entry;
	struct hr_wsserve *s;
	int fd;
	struct hr_watch *readable, *writable, *timer;
	struct hr_buf head; /* the request's, until it is answered */
	struct hr_wsframes frames;
	struct hr_buf out;
	size_t sent;
	bool asked, open, closing, trusted;
	bool heard;                    /* has sent something since the last ping */
	bool behind;                   /* had output to take at the last ping */
	uint64_t taken, taken_at_ping; /* bytes of output */
	int late_code;
	const char *late_reason;
	void *own;
};

struct hr_wsserve {
	struct hr_loop *loop;
	int listener;
	struct hr_watch *incoming;
	struct hr_watch *ping; /* armed while there are trusted clients */
	int64_t ping_ms;
	bool pings; /* the timer is armed */
	unsigned most, n;
	struct hr_wsserve_calls calls;
	void *arg;
	TAILQ_HEAD(, hr_wsconn) list;
};

static void
conn_free(struct hr_wsconn *c)
{
	TAILQ_REMOVE(&c->s->list, c, entry);
	c->s->n--;
	hr_watch_free(c->readable);
	hr_watch_free(c->writable);
	hr_watch_free(c->timer);
	hr_fd_close(&c->fd);
	hr_buf_done(&c->head);
	hr_buf_done(&c->out);
	hr_wsframes_done(&c->frames);
	free(c);
}

static void
drop(struct hr_wsconn *c)
{
	if (c->asked)
		c->s->calls.left(c->s->arg, c);
	conn_free(c);
}

/* ---- output ---- */

/* Sends what the client takes. Returns false if it has left. */
static bool
flush(struct hr_wsconn *c)
{
	const size_t before = c->sent;
	int r = hr_flush(c->fd, &c->out, &c->sent);

	c->taken += c->sent - before;
	if (r <= 0)
		return r == 0;
	hr_buf_done(&c->out); /* an event may have been large */
	hr_buf_init(&c->out, OUT_MAX);
	c->sent = 0;
	return true;
}

static void
on_writable(void *arg)
{
	struct hr_wsconn *c = arg;

	if (!flush(c)) {
		drop(c);
	} else if (c->out.len == 0) {
		hr_watch_drop(&c->writable);
		if (c->closing)
			(void)shutdown(c->fd, SHUT_WR); /* unread input would reset it */
		else
			c->s->calls.drained(c->s->arg, c);
	}
}

/* Lets the loop send, so that no caller finds the connection freed. */
static void
wake(struct hr_wsconn *c)
{
	if (c->writable == NULL)
		c->writable = hr_loop_writable(c->s->loop, c->fd, on_writable, c, NULL);
	if (c->writable == NULL || c->out.fail != HR_OK)
		(void)shutdown(c->fd, SHUT_RDWR); /* the loop sees the end */
}

bool
hr_wsconn_is_drained(const struct hr_wsconn *c)
{
	return c->out.len == 0;
}

void
hr_wsconn_send(struct hr_wsconn *c, const char *p, size_t len)
{
	if (c->closing)
		return;
	hr_wsframe_put(&c->out, HR_WS_TEXT, NULL, p, len);
	wake(c);
}

void
hr_wsconn_limit(struct hr_wsconn *c, int64_t ms, int code, const char *reason)
{
	c->late_code = code;
	c->late_reason = reason;
	if (hr_watch_arm(c->timer, ms, NULL) < 0)
		(void)shutdown(c->fd, SHUT_RDWR);
}

/* Arms the timer of the pings. */
static void
arm_pings(struct hr_wsserve *s)
{
	struct hr_err err = {0};

	s->pings = hr_watch_arm(s->ping, s->ping_ms, &err) == 0;
	if (!s->pings)
		hr_log(HR_LOG_ERROR, "clients that vanish are not noticed: %s", err.msg);
}

void
hr_wsconn_trust(struct hr_wsconn *c)
{
	c->trusted = c->heard = true;
	if (!c->s->pings)
		arm_pings(c->s);
	c->frames.most = HR_WS_MESSAGE_MAX;
	if (!c->closing)
		hr_watch_disarm(c->timer);
}

/* Sends the last frame. */
static void
close_with(struct hr_wsconn *c, const char *p, size_t len)
{
	hr_wsframe_put(&c->out, HR_WS_CLOSE, NULL, p, len);
	c->closing = true;
	hr_wsconn_limit(c, SLOW_MS, 0, NULL);
	wake(c);
}

void
hr_wsconn_close(struct hr_wsconn *c, int code, const char *reason)
{
	char text[HR_WS_CONTROL_MAX];
	int n;

	if (c->closing)
		return;
	n = snprintf(text, sizeof(text), "%c%c%s", code >> 8, code & 0xff, reason);
	close_with(c, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

/* Sends a ping. Returns false if the client has not answered the last one, and has not come nearer
 * to it either: a slow client may have much to read before. */
static bool
ping(struct hr_wsconn *c)
{
	if (!c->heard && !(c->behind && c->taken > c->taken_at_ping))
		return false;
	c->behind = c->out.len > c->sent;
	c->taken_at_ping = c->taken;
	if (!c->heard)
		return true;
	c->heard = false;
	hr_wsframe_put(&c->out, HR_WS_PING, NULL, "", 0);
	wake(c);
	return true;
}

/* Sends pings, and closes clients that have not answered the last one. */
static void
on_ping(void *arg)
{
	struct hr_wsserve *s = arg;
	struct hr_wsconn *c;
	bool any = false;

	TAILQ_FOREACH(c, &s->list, entry)
	{
		if (!c->trusted || c->closing)
			continue;
		any = true;
		if (!ping(c))
			hr_wsconn_close(c, 1011, "No answer to a ping");
	}
	s->pings = false;
	if (any)
		arm_pings(s);
}

static void
on_late(void *arg)
{
	struct hr_wsconn *c = arg;

	if (c->open && !c->closing && c->late_reason != NULL)
		hr_wsconn_close(c, c->late_code, c->late_reason);
	else
		drop(c);
}

/* ---- the request ---- */

const char *
hr_wsconn_target(const struct hr_wsconn *c)
{
	return hr_buf_str(&c->head) + strlen(hr_buf_str(&c->head)) + 1;
}

const char *
hr_wsconn_header(const struct hr_wsconn *c, const char *name)
{
	const char *end = c->head.p + c->head.len, *line = hr_wsconn_target(c);
	size_t len = strlen(name);

	for (line += strlen(line) + 1; line < end; line += strlen(line) + 1)
		if (strncasecmp(line, name, len) == 0 && line[len] == ':')
			return line + len + 1 + strspn(line + len + 1, " \t");
	return "";
}

void
hr_wsconn_accept(struct hr_wsconn *c)
{
	char text[64];

	hr_ws_accept(hr_wsconn_header(c, "Sec-WebSocket-Key"), text);
	hr_buf_addf(&c->out,
	    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
	    "Sec-WebSocket-Accept: %s\r\n\r\n",
	    text);
	c->open = true;
	wake(c);
}

void
hr_wsconn_refuse(struct hr_wsconn *c, const char *status, const char *json)
{
	hr_buf_addf(&c->out,
	    "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
	    "Connection: close\r\n\r\n%s",
	    status, strlen(json), json);
	c->closing = true;
	hr_wsconn_limit(c, SLOW_MS, 0, NULL);
	wake(c);
}

/* Splits a whole head into strings: the method, the target, and each header, some of them empty.
 * Returns the bytes after the head. */
static struct hr_span
split_head(struct hr_wsconn *c, char *end)
{
	struct hr_span rest = {end + 4, c->head.len - (size_t)(end + 4 - c->head.p)};
	char *p = c->head.p;
	unsigned blanks = 0;

	for (; p < end; p++) {
		if (*p == '\r' || *p == '\n' || (*p == ' ' && blanks < 2)) {
			blanks += *p == ' ';
			*p = '\0';
		}
	}
	*end = '\0';
	c->head.len = (size_t)(end + 1 - c->head.p);
	return rest;
}

/* Returns true for a close frame without a code, or with one that a client may send (RFC 6455,
 * 7.4). */
static bool
is_close(const char *p, size_t len)
{
	const int code = len > 1 ? (unsigned char)p[0] << 8 | (unsigned char)p[1] : 0;

	if (len < 2)
		return len == 0;
	return ((code >= 1000 && code <= 1014 && (code < 1004 || code > 1006)) ||
		   (code >= 3000 && code < 5000)) &&
	       hr_utf8_strict(p + 2, len - 2);
}

static int
on_frame(void *arg, enum hr_ws_op op, const char *p, size_t len)
{
	struct hr_wsconn *c = arg;

	if (op == HR_WS_TEXT && !hr_utf8_strict(p, len))
		hr_wsconn_close(c, 1007, "The text is not UTF-8");
	else if (op == HR_WS_TEXT || op == HR_WS_BINARY)
		c->s->calls.message(c->s->arg, c, op == HR_WS_TEXT ? p : NULL, len);
	else if (op == HR_WS_CLOSE && is_close(p, len))
		close_with(c, p, len);
	else if (op == HR_WS_CLOSE)
		hr_wsconn_close(c, 1002, "The close frame is malformed");
	else if (op == HR_WS_PING && c->out.len < PIECE) /* a flood gets fewer answers */
		hr_wsframe_put(&c->out, HR_WS_PONG, NULL, p, len);
	if (c->out.len > 0)
		wake(c);
	return c->closing;
}

/* Closes a connection whose frames are malformed or too long. */
static void
feed(struct hr_wsconn *c, const char *p, size_t len)
{
	struct hr_err err = {0};

	if (hr_wsframes_feed(&c->frames, p, len, on_frame, c, &err) < 0)
		hr_wsconn_close(c,
		    err.code == HR_E_PROTO      ? 1002
		    : err.code == HR_E_TOOLARGE ? 1009
						: 1011,
		    err.msg);
}

/* Answers a request that opens no WebSocket of version 13. Returns false for others. */
static bool
refuse_handshake(struct hr_wsconn *c)
{
	const char *key = hr_wsconn_header(c, "Sec-WebSocket-Key");

	if (strcasecmp(hr_wsconn_header(c, "Upgrade"), "websocket") != 0)
		return false;
	if (strcmp(hr_wsconn_header(c, "Sec-WebSocket-Version"), "13") != 0)
		hr_wsconn_refuse(c, "426 Upgrade Required\r\nSec-WebSocket-Version: 13", "");
	else if (strlen(key) != KEY_LEN || strcmp(key + KEY_LEN - 2, "==") != 0)
		hr_wsconn_refuse(c, "400 Bad Request", "");
	return c->closing;
}

/* Returns false if the connection must end. */
static bool
take_head(struct hr_wsconn *c, const char *p, size_t len)
{
	struct hr_span rest;
	char *end;

	hr_buf_add(&c->head, p, len);
	end = memmem(hr_buf_str(&c->head), c->head.len, "\r\n\r\n", 4);
	if (c->head.fail != HR_OK || end == NULL)
		return c->head.fail == HR_OK;
	rest = split_head(c, end);
	if (!refuse_handshake(c)) {
		c->asked = true;
		c->s->calls.asked(c->s->arg, c);
	}
	if (c->open)
		feed(c, rest.p, rest.len);
	hr_buf_done(&c->head); /* may have a key */
	return true;
}

static void
on_readable(void *arg)
{
	static char piece[PIECE];
	struct hr_wsconn *c = arg;
	ssize_t n = recv(c->fd, piece, sizeof(piece), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	c->heard = true;
	if (n > 0 && c->open && !c->closing)
		feed(c, piece, (size_t)n);
	else if (n <= 0 || (!c->closing && !take_head(c, piece, (size_t)n)))
		drop(c);
}

static void
on_incoming(void *arg)
{
	struct hr_wsserve *s = arg;
	int fd = hr_fd_accept(s->listener, SOCK_NONBLOCK, -1);
	struct hr_wsconn *c = TAILQ_FIRST(&s->list);
	struct hr_err err = {0};

	if (fd >= 0 && s->n == s->most) {
		while (c != NULL && c->trusted)
			c = TAILQ_NEXT(c, entry);
		if (c != NULL)
			drop(c);
	}
	c = fd >= 0 && s->n < s->most ? calloc(1, sizeof(*c)) : NULL;
	if (c == NULL) {
		hr_fd_close(&fd);
		return;
	}
	c->s = s;
	c->fd = fd;
	hr_buf_init(&c->head, HEAD_MAX);
	hr_buf_init(&c->out, OUT_MAX);
	hr_wsframes_init(&c->frames);
	c->frames.server = true;
	c->frames.most = FIRST_MAX;
	TAILQ_INSERT_TAIL(&s->list, c, entry);
	s->n++;
	c->timer = hr_loop_timer(s->loop, on_late, c, &err);
	c->readable = hr_loop_readable(s->loop, fd, on_readable, c, &err);
	if (c->timer == NULL || c->readable == NULL || hr_watch_arm(c->timer, SLOW_MS, &err) < 0) {
		hr_log(HR_LOG_ERROR, "a connection cannot be served: %s", err.msg);
		conn_free(c);
	}
}

/* ---- the server ---- */

struct hr_wsserve *
hr_wsserve_open(struct hr_loop *loop, int listener, unsigned most, int64_t ping_ms,
    const struct hr_wsserve_calls *calls, void *arg, struct hr_err *err)
{
	struct hr_wsserve *s = calloc(1, sizeof(*s));

	if (s == NULL || hr_fd_nonblock(listener, true, err) < 0) {
		free(s);
		return hr_err_null(err);
	}
	*s = (struct hr_wsserve){.loop = loop, .listener = listener, .most = most, .calls = *calls};
	s->ping_ms = ping_ms;
	s->arg = arg;
	TAILQ_INIT(&s->list);
	s->ping = hr_loop_timer(loop, on_ping, s, err);
	if (s->ping != NULL)
		s->incoming = hr_loop_readable(loop, listener, on_incoming, s, err);
	if (s->incoming != NULL)
		return s;
	hr_watch_free(s->ping);
	free(s);
	return NULL;
}

void
hr_wsserve_leave(struct hr_wsserve *s)
{
	struct hr_wsconn *c;

	TAILQ_FOREACH(c, &s->list, entry)
	{
		if (!c->open || c->closing)
			continue;
		hr_wsconn_close(c, 1012, "");
		(void)hr_flush(c->fd, &c->out, &c->sent);
	}
}

void
hr_wsconn_own(struct hr_wsconn *c, void *own)
{
	c->own = own;
}

void *
hr_wsconn_own_of(const struct hr_wsconn *c)
{
	return c->own;
}
