/* Opens one connection per request: poll() waits for it, for the caller's descriptor and for the
 * timeout. */
#include "config.h"

#include "http/near.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"
#include "base/fd.h"
#include "http/answer.h"

#define PIECE 65536
#define REQUEST_HEAD_MAX (1u << 20)

static const char before[] = "http://";

/* The address in "http://HOST/TARGET"; HOST is borrowed, with its length. */
struct where {
	const char *host, *target;
	size_t host_len;
	union {
		struct sockaddr any;
		struct sockaddr_un un;
		struct sockaddr_in in;
	} addr;
	socklen_t addr_len;
};

/* Parses "127.0.0.1:3000"; the default port is 80. */
static bool
of_this_machine(struct where *w)
{
	static const char name[] = "127.0.0.1";
	const size_t n = sizeof(name) - 1;
	const char *p = w->host + n;
	unsigned long port = 0;

	if (w->host_len < n || memcmp(w->host, name, n) != 0)
		return false;
	w->addr.in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(80)};
	w->addr.in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	w->addr_len = sizeof(w->addr.in);
	if (w->host_len == n)
		return true;
	if (*p++ != ':' || p == w->target)
		return false;
	for (; p < w->target && *p >= '0' && *p <= '9' && port <= 65535; p++)
		port = port * 10 + (unsigned long)(*p - '0');
	w->addr.in.sin_port = htons((uint16_t)port);
	return p == w->target && port > 0 && port <= 65535;
}

static bool
where_of(const struct hr_http_request *req, struct where *w)
{
	size_t n;

	if (strncmp(req->url, before, sizeof(before) - 1) != 0)
		return false;
	w->host = req->url + sizeof(before) - 1;
	w->host_len = strcspn(w->host, "/?");
	w->target = w->host + w->host_len;
	if (req->unix_socket == NULL)
		return of_this_machine(w);
	n = strlen(req->unix_socket);
	w->addr.un = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (n == 0 || n >= sizeof(w->addr.un.sun_path))
		return false;
	memcpy(w->addr.un.sun_path, req->unix_socket, n + 1);
	w->addr_len = sizeof(w->addr.un);
	return true;
}

/* Refuses URLs that libcurl would change or refuse. */
static bool
is_plain(const char *url)
{
	const char *p;

	for (p = url; *p != '\0'; p++)
		if ((unsigned char)*p <= ' ' || (unsigned char)*p >= 0x7F || *p == '#' ||
		    *p == '@' || (p[0] == '/' && p[1] == '.'))
			return false;
	return true;
}

bool
hr_near_can(const struct hr_http_request *req)
{
	bool direct = req->unix_socket != NULL || req->proxy == NULL || *req->proxy == '\0';
	struct where w;

	return direct && !req->http2 && req->file == NULL && req->source == NULL &&
	       req->connect_to == NULL && is_plain(req->url) && where_of(req, &w);
}

/* ---- the request ---- */

static bool
has_header(const struct hr_http_request *req, const char *name)
{
	const char *const *h;
	size_t n = strlen(name);

	for (h = req->headers; h != NULL && *h != NULL; h++)
		if (strncasecmp(*h, name, n) == 0 && (*h)[n] == ':')
			return true;
	return false;
}

static int
put_head(
    struct hr_buf *b, const struct hr_http_request *req, const struct where *w, struct hr_err *err)
{
	bool has_body = req->body != NULL || strcmp(req->method, "POST") == 0;
	const char *const *h;
	size_t n;

	hr_buf_addf(
	    b, "%s %s%s HTTP/1.1\r\n", req->method, *w->target == '/' ? "" : "/", w->target);
	if (!has_header(req, "Host"))
		hr_buf_addf(b, "Host: %.*s\r\n", (int)w->host_len, w->host);
	if (!has_header(req, "Accept"))
		hr_buf_adds(b, "Accept: */*\r\n");
	for (h = req->headers; h != NULL && *h != NULL; h++) {
		n = strlen(*h);
		if (strpbrk(*h, "\r\n") != NULL)
			return hr_err_set(err, HR_E_INVAL, "a header of the request has two lines");
		if (n > 0 && (*h)[n - 1] != ':') /* a header without value must not be sent */
			hr_buf_addf(b, "%s\r\n", *h);
	}
	if (has_body && !has_header(req, "Content-Type"))
		hr_buf_adds(b, "Content-Type: application/x-www-form-urlencoded\r\n");
	if (has_body)
		hr_buf_addf(b, "Content-Length: %zu\r\n", req->body != NULL ? req->body_len : 0);
	hr_buf_adds(b, "Connection: close\r\n\r\n");
	return hr_buf_check(b, err);
}

/* ---- the conversation ---- */

struct talk {
	const struct hr_http_request *req;
	struct hr_http_answer *a;
	int fd;
	bool connected;
	struct hr_buf head;
	size_t all;     /* bytes of the head and the body */
	size_t sent;    /* bytes that were sent of them */
	int unsent;     /* errno that stopped the sending */
	int64_t silent; /* deadline of a request that does not proceed; 0: none */
	int64_t latest; /* deadline of the whole request; 0: none */
	struct hr_http_pace pace;
	struct hr_http_reader reader;
};

static int
fault(struct talk *t, enum hr_http_fault f, int sys, const char *what, struct hr_err *err)
{
	t->a->fault = f;
	return hr_err_set(
	    err, HR_E_GONE, "%s%s%s", what, sys != 0 ? ": " : "", sys != 0 ? strerror(sys) : "");
}

static void
progressed(struct talk *t)
{
	t->pace.away = t->reader.away;
	t->silent = hr_http_late_at(
	    &t->pace, t->req, t->a, t->sent, t->sent == t->all, t->reader.got, hr_now_ms());
}

static int
late(struct talk *t, struct hr_err *err)
{
	t->a->fault = t->connected ? HR_HTTP_READ_TIMEOUT : HR_HTTP_CONNECT_TIMEOUT;
	return hr_err_set(err, HR_E_TIMEOUT, "the server did not answer in time");
}

/* Waits until the connection is ready. */
static int
wait_for(struct talk *t, bool to_write, struct hr_err *err)
{
	struct pollfd p[2] = {{.fd = t->fd, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
	int64_t end = t->silent, left = -1;
	int n;

	if (!t->connected || to_write)
		p[0].events |= POLLOUT;
	if (t->req->watch_fd >= 0)
		p[1].fd = t->req->watch_fd;
	if (t->latest > 0 && (end == 0 || t->latest < end))
		end = t->latest;
	/* stops a server that never ends its answer, too */
	if (t->latest > 0 && hr_now_ms() >= t->latest)
		return late(t, err);
	do {
		if (end > 0 && (left = end - hr_now_ms()) <= 0)
			left = 0;
		n = poll(p, 2, left > INT32_MAX ? INT32_MAX : (int)left);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return fault(t, HR_HTTP_OTHER, errno, "poll", err);
	if (p[1].revents != 0)
		return fault(t, HR_HTTP_CANCELLED, 0, "given up", err);
	return n > 0 ? 0 : late(t, err);
}

static int
connect_socket(struct talk *t, const struct where *w, struct hr_err *err)
{
	const int one = 1;
	socklen_t len = sizeof(int);
	int e = 0;

	t->fd = socket(w->addr.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (t->fd < 0)
		return fault(t, HR_HTTP_OTHER, errno, "socket", err);
	/* TCP_NODELAY fails only for other sockets: requests are sent at once there in any case */
	if (w->addr.any.sa_family == AF_INET)
		(void)setsockopt(t->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	while (connect(t->fd, &w->addr.any, w->addr_len) != 0) {
		if (errno == EINTR)
			continue;
		if (errno != EINPROGRESS) {
			e = errno;
			break;
		}
		if (wait_for(t, true, err) != 0)
			return -1;
		if (getsockopt(t->fd, SOL_SOCKET, SO_ERROR, &e, &len) != 0)
			e = errno;
		break;
	}
	t->connected = true;
	if (e == 0 || e == EISCONN)
		return 0;
	t->a->fault = HR_HTTP_CONNECT;
	return t->req->unix_socket != NULL ? hr_err_set(err, HR_E_GONE, "connect to %s: %s",
						 t->req->unix_socket, strerror(e))
					   : hr_err_set(err, HR_E_GONE, "connect to %.*s: %s",
						 (int)w->host_len, w->host, strerror(e));
}

/* Sends once. A failure is not an error yet, since the server may have answered all the same. */
static void
send_some(struct talk *t)
{
	bool head = t->sent < t->head.len;
	size_t at = head ? t->sent : t->sent - t->head.len;
	size_t len = head ? t->head.len - at : t->req->body_len - at;
	ssize_t n = send(t->fd, (head ? t->head.p : t->req->body) + at, len, MSG_NOSIGNAL);

	if (n >= 0) {
		t->sent += (size_t)n;
		progressed(t);
		if (!head && t->req->progress != NULL)
			t->req->progress(
			    t->req->progress_arg, t->sent - t->head.len, t->req->body_len);
	} else if (errno != EAGAIN && errno != EINTR) {
		t->unsent = errno;
	}
}

/* Reads once. Returns 0, or -1. */
static int
read_some(struct talk *t, char *room, struct hr_err *err)
{
	ssize_t n = recv(t->fd, room, PIECE, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n <= 0 && t->unsent != 0 && t->reader.part == HR_HTTP_STATUS_LINE)
		return fault(t, HR_HTTP_WRITE, t->unsent, "send to the server", err);
	if (n < 0)
		return fault(t, HR_HTTP_READ, errno, "read the server's answer", err);
	if (n == 0)
		return hr_http_reader_end(&t->reader, err);
	if (hr_http_reader_feed(&t->reader, room, (size_t)n, err) != 0)
		return -1;
	progressed(t);
	if (t->reader.part != HR_HTTP_DONE && t->silent > 0 && hr_now_ms() >= t->silent)
		return late(t, err);
	if (t->req->progress != NULL && t->reader.got > t->req->body_len)
		t->req->progress(t->req->progress_arg, t->reader.got, t->reader.length);
	return 0;
}

static int
converse(struct talk *t, struct hr_err *err)
{
	HR_FREE char *room = malloc(PIECE);
	bool to_write;
	int r = room != NULL ? 0 : hr_err_nomem(err);

	t->all = t->head.len + (t->req->body != NULL ? t->req->body_len : 0);
	while (r == 0 && t->reader.part != HR_HTTP_DONE) {
		to_write = t->sent < t->all && t->unsent == 0;
		if (to_write)
			send_some(t);
		to_write = t->sent < t->all && t->unsent == 0;
		r = wait_for(t, to_write, err);
		if (r == 0)
			r = read_some(t, room, err);
	}
	return r;
}

int
hr_near_do(const struct hr_http_request *req, struct hr_http_answer *ret, struct hr_err *err)
{
	struct talk t = {.req = req, .a = ret, .fd = -1};
	struct where w;
	int r = -1;

	ret->fault = HR_HTTP_OTHER;
	if (!where_of(req, &w))
		return hr_err_set(err, HR_E_INVAL, "%s is not of this machine", req->url);
	progressed(&t);
	if (req->total_s > 0)
		t.latest = hr_now_ms() + (int64_t)req->total_s * 1000;
	hr_buf_init(&t.head, REQUEST_HEAD_MAX);
	hr_http_reader_init(&t.reader, req, ret);
	if (put_head(&t.head, req, &w, err) == 0 && connect_socket(&t, &w, err) == 0)
		r = converse(&t, err);
	hr_http_reader_done(&t.reader);
	hr_buf_done(&t.head);
	hr_fd_close(&t.fd);
	if (r == 0)
		ret->fault = HR_HTTP_NONE;
	return r;
}
