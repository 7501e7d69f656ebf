/* bench_load: sends one HTTP request over and over and reports the latencies as one line of JSON.
 *
 *   bench_load --port N [options] PATH
 *
 * N connections, one request under way on each; a new request is sent as soon as the answer to the
 * one before is complete. Time runs from before the request is sent (--new: before the connection
 * is made) until its last byte was read. An answer that is not 200 or lacks the expected text is an
 * error, and an error fails the whole measurement: a fast refusal must never look like a result. */
#include "config.h"

#include <argp.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http.h"
#include "lat.h"

enum { MAX_HEADERS = 16, MAX_CONNECTIONS = 20000, EVENTS = 64 };

struct conn {
	int fd;
	bool busy, kept; /* kept: it has carried an answer before */
	uint64_t started;
	struct bench_answer answer;
};

struct load {
	struct bench_target target;
	const char *host, *headers[MAX_HEADERS];
	int port, epoll;
	size_t connections;
	bool new_connections;
	double seconds;
	uint64_t requests, min, warm;

	struct conn *conns;
	struct bench_lat lat;
	uint64_t begun, deadline, ended; /* ns; begun 0: warming up */
	uint64_t sent, answered, errors, reopened;
	size_t busy;
	bool said; /* the first error was shown */
};

enum { OPT_HEADER = 'H', OPT_EXPECT = 'x', OPT_NEW = 'N', OPT_MIN = 'm', OPT_WARM = 'w' };

static const struct argp_option options[] = {
    {"host", 'h', "ADDRESS", 0, "IPv4 address [127.0.0.1]", 0},
    {"port", 'p', "PORT", 0, "TCP port", 0},
    {"connections", 'c', "N", 0, "clients at the same time [1]", 0},
    {"new", OPT_NEW, NULL, 0, "a new connection for each request", 0},
    {"seconds", 's', "S", 0, "how long [1]", 0},
    {"requests", 'n', "N", 0, "how many; time does not matter then", 0},
    {"min", OPT_MIN, "N", 0, "not fewer, however long it takes [5]", 0},
    {"warm", OPT_WARM, "N", 0, "requests before the clock starts [2 for each connection]", 0},
    {"method", 'X', "NAME", 0, "GET, or POST where there is a body", 0},
    {"body", 'b', "FILE", 0, "the body, sent as application/json", 0},
    {"header", OPT_HEADER, "LINE", 0, "another header (repeatable)", 0},
    {"expect", OPT_EXPECT, "TEXT", 0, "text that each answer must hold", 0},
    {0},
};

static uint64_t
number(const char *text, struct argp_state *state)
{
	char *end;
	unsigned long long n;

	errno = 0;
	n = strtoull(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || text[0] == '-')
		argp_error(state, "not a number: %s", text);
	return n;
}

static error_t
parse(int key, char *arg, struct argp_state *state)
{
	struct load *l = state->input;

	switch (key) {
	case 'h': l->host = arg; break;
	case 'p': l->port = (int)number(arg, state); break;
	case 'c': l->connections = number(arg, state); break;
	case OPT_NEW: l->new_connections = true; break;
	case 's': l->seconds = strtod(arg, NULL); break;
	case 'n': l->requests = number(arg, state); break;
	case OPT_MIN: l->min = number(arg, state); break;
	case OPT_WARM: l->warm = number(arg, state); break;
	case 'X': l->target.method = arg; break;
	case 'b': l->target.body_file = arg; break;
	case OPT_EXPECT: l->target.expect = arg; break;
	case OPT_HEADER:
		if (l->target.n_headers == MAX_HEADERS)
			argp_error(state, "more than %d headers", MAX_HEADERS);
		l->headers[l->target.n_headers++] = arg;
		break;
	case ARGP_KEY_ARG:
		if (l->target.path != NULL)
			argp_usage(state);
		l->target.path = arg;
		break;
	case ARGP_KEY_END:
		if (l->target.path == NULL || l->port < 1 || l->port > 65535)
			argp_usage(state);
		if (l->connections < 1 || l->connections > MAX_CONNECTIONS)
			argp_error(state, "1 to %d connections", MAX_CONNECTIONS);
		break;
	default: return ARGP_ERR_UNKNOWN;
	}
	return 0;
}

static void
load_error(struct load *l, const struct conn *c, const char *what)
{
	l->errors++;
	if (l->said)
		return;
	l->said = true;
	(void)fprintf(stderr, "bench_load: %s: %s\n", l->target.path, what);
	if (c->answer.len > 0)
		(void)fprintf(stderr, "%.*s\n", (int)(c->answer.len < 600 ? c->answer.len : 600),
		    c->answer.p);
}

/* Whether one more request is to be sent. */
static bool
load_wants_more(const struct load *l)
{
	if (l->errors > 0)
		return false;
	if (l->begun == 0)
		return true;
	if (l->requests > 0)
		return l->sent < l->warm + l->requests;
	return bench_now() < l->deadline || l->lat.n < l->min;
}

static bool
conn_open(struct load *l, struct conn *c)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};

	c->fd = bench_connect(&l->target, true);
	c->kept = false;
	if (c->fd >= 0 && epoll_ctl(l->epoll, EPOLL_CTL_ADD, c->fd, &ev) == 0)
		return true;
	load_error(l, c, strerror(errno));
	return false;
}

/* No TIME_WAIT is left behind: tens of thousands of connections must not use up the ports. */
static void
conn_close(struct conn *c)
{
	const struct linger none = {.l_onoff = 1};

	if (c->fd < 0)
		return;
	(void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
	(void)close(c->fd);
	c->fd = -1;
}

static bool
conn_write(struct load *l, struct conn *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLOUT};
	size_t at = 0;
	ssize_t n;

	while (at < l->target.request_len) {
		n = send(c->fd, l->target.request + at, l->target.request_len - at, MSG_NOSIGNAL);
		if (n >= 0)
			at += (size_t)n;
		else if (errno == EAGAIN)
			(void)poll(&p, 1, -1);
		else if (errno != EINTR)
			return false;
	}
	return true;
}

static void
conn_finish(struct load *l, struct conn *c)
{
	if (c->busy)
		l->busy--;
	c->busy = false;
}

static void
conn_send(struct load *l, struct conn *c)
{
	bench_answer_reset(&c->answer);
	if (!c->busy) {
		c->busy = true;
		l->busy++;
		l->sent++;
		c->started = bench_now();
	}
	if (c->fd < 0 && !conn_open(l, c)) {
		conn_finish(l, c);
		return;
	}
	if (conn_write(l, c))
		return;
	/* the server may close a kept connection at any time */
	if (c->kept) {
		conn_close(c);
		l->reopened++;
		conn_send(l, c);
		return;
	}
	load_error(l, c, strerror(errno));
	conn_close(c);
	conn_finish(l, c);
}

static void
conn_answered(struct load *l, struct conn *c)
{
	uint64_t now = bench_now();

	if (!bench_answer_good(&c->answer, &l->target))
		load_error(l, c, "not the answer that was expected");
	l->answered++;
	if (l->begun != 0) {
		bench_lat_add(&l->lat, now - c->started);
		l->ended = now;
	} else if (l->answered >= l->warm) {
		l->begun = now;
		l->deadline = now + (uint64_t)(l->seconds * 1e9);
	}
	conn_finish(l, c);
	c->kept = true;
	if (l->new_connections || c->answer.closes || c->answer.length == -1)
		conn_close(c);
	if (load_wants_more(l))
		conn_send(l, c);
}

static void
conn_lost(struct load *l, struct conn *c, const char *what)
{
	conn_close(c);
	if (c->busy && c->kept && c->answer.len == 0) {
		l->reopened++;
		conn_send(l, c);
		return;
	}
	if (c->busy)
		load_error(l, c, what);
	conn_finish(l, c);
}

static void
conn_read(struct load *l, struct conn *c)
{
	size_t room;
	char *at;
	ssize_t n;
	int r;

	if (c->fd < 0)
		return; /* closed while its event was waiting */
	at = bench_answer_room(&c->answer, &room);
	n = recv(c->fd, at, room, 0);
	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			conn_lost(l, c, strerror(errno));
		return;
	}
	if (!c->busy) {
		conn_close(c); /* an idle connection: its end is all that can come */
		return;
	}
	if (n == 0 && c->answer.len == 0) {
		conn_lost(l, c, "connection closed without an answer");
		return;
	}
	r = bench_answer_add(&c->answer, (size_t)n, n == 0);
	if (r > 0)
		conn_answered(l, c);
	else if (r < 0)
		conn_lost(l, c, "the answer is not HTTP or is cut short");
}

static void
load_run(struct load *l)
{
	struct epoll_event events[EVENTS];
	size_t i;
	int n, k;

	for (i = 0; i < l->connections; i++) {
		l->conns[i].fd = -1;
		bench_answer_init(&l->conns[i].answer);
	}
	if (l->warm == 0)
		l->begun = bench_now();
	l->deadline = l->begun + (uint64_t)(l->seconds * 1e9);
	for (i = 0; i < l->connections && load_wants_more(l); i++)
		conn_send(l, &l->conns[i]);
	while (l->busy > 0) {
		n = epoll_wait(l->epoll, events, EVENTS, -1);
		if (n < 0 && errno != EINTR) {
			perror("epoll_wait");
			exit(1);
		}
		for (k = 0; k < n; k++)
			conn_read(l, events[k].data.ptr);
	}
}

int
main(int argc, char **argv)
{
	static const struct argp argp = {
	    options, parse, "PATH", "Times HTTP requests.", NULL, NULL, NULL};
	struct load l = {
	    .host = "127.0.0.1", .connections = 1, .seconds = 1, .min = 5, .warm = UINT64_MAX};
	char more[128];
	size_t i;

	argp_parse(&argp, argc, argv, 0, NULL, &l);
	if (l.warm == UINT64_MAX)
		l.warm = 2 * l.connections;
	l.target.headers = l.headers;
	bench_target_make(&l.target, l.host, l.port);
	bench_lat_init(&l.lat);
	l.epoll = epoll_create1(EPOLL_CLOEXEC);
	l.conns = calloc(l.connections, sizeof(*l.conns));
	if (l.epoll < 0 || l.conns == NULL) {
		perror("bench_load");
		return 1;
	}
	load_run(&l);
	(void)snprintf(more, sizeof(more), ",\"sent\":%llu,\"errors\":%llu,\"reopened\":%llu",
	    (unsigned long long)l.sent, (unsigned long long)l.errors,
	    (unsigned long long)l.reopened);
	bench_lat_print(&l.lat, l.lat.n > 0 ? (double)(l.ended - l.begun) / 1e9 : 0, more);
	for (i = 0; i < l.connections; i++) {
		conn_close(&l.conns[i]);
		bench_answer_done(&l.conns[i].answer);
	}
	free(l.conns);
	bench_lat_done(&l.lat);
	bench_target_done(&l.target);
	return l.errors > 0;
}
