/* Serves HTTP with libevent. Invariant: `req` is NULL once the client has left or the answer is
 * complete; libevent frees its request itself in both cases, except one whose answer was cut off,
 * which has no connection any more and must be ended here. */
#include "config.h"

#include "http/serve.h"

#include <stdlib.h>
#include <sys/queue.h>

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>

#include "base/fd.h"
#include "base/loop.h"
#include "http/answer.h"

#define HEADERS_MAX (256u << 10)
#define TIMEOUT_S (7 * 86400) /* seconds; nginx has the shorter timeout */
#define PIECE 16384
#define PIECES_MAX (4 * PIECE)
#define REST_S 10 /* seconds in which nginx must have read an early answer */

/* A body that still arrives. libevent reads no body of a TRACE and leaves the bytes
 * after its head alone until it is answered. */
struct body {
	const char *method;
	struct hr_http_request none;
	struct hr_http_answer piece;
	struct hr_http_reader reader;
	bool cut;
	hr_serve_event_fn *arrived;
	void *arg;
};

struct hr_serve_request {
	LIST_ENTRY(hr_serve_request) entry;
	struct evhttp_request *req;
	struct evhttp_connection *connection;
	hr_serve_event_fn *drained, *left;
	void *arg;
	struct body *body; /* NULL: the whole body is there */
};

struct hr_serve {
	struct evhttp *http;
	hr_serve_fn *fn;
	void *arg;
	LIST_HEAD(hr_serve_list, hr_serve_request) requests;
};

static void
request_free(struct hr_serve_request *q)
{
	LIST_REMOVE(q, entry);
	if (q->body != NULL) {
		hr_http_reader_done(&q->body->reader);
		hr_buf_done(&q->body->piece.body);
		free(q->body);
	}
	free(q);
}

/* ---- the request ---- */

const char *
hr_serve_method(const struct hr_serve_request *q)
{
	static const struct {
		enum evhttp_cmd_type type;
		const char *name;
	} names[] = {{EVHTTP_REQ_GET, "GET"}, {EVHTTP_REQ_POST, "POST"}, {EVHTTP_REQ_HEAD, "HEAD"},
	    {EVHTTP_REQ_PUT, "PUT"}, {EVHTTP_REQ_DELETE, "DELETE"}, {EVHTTP_REQ_OPTIONS, "OPTIONS"},
	    {EVHTTP_REQ_PATCH, "PATCH"}};
	size_t i;

	if (q->req != NULL && q->body != NULL)
		return q->body->method;
	for (i = 0; q->req != NULL && i < sizeof(names) / sizeof(*names); i++)
		if (names[i].type == evhttp_request_get_command(q->req))
			return names[i].name;
	return "";
}

static const struct evhttp_uri *
uri_of(const struct hr_serve_request *q)
{
	return q->req != NULL ? evhttp_request_get_evhttp_uri(q->req) : NULL;
}

const char *
hr_serve_path(const struct hr_serve_request *q)
{
	const struct evhttp_uri *uri = uri_of(q);
	const char *path = uri != NULL ? evhttp_uri_get_path(uri) : NULL;

	return path != NULL ? path : "";
}

const char *
hr_serve_query(const struct hr_serve_request *q)
{
	const struct evhttp_uri *uri = uri_of(q);
	const char *query = uri != NULL ? evhttp_uri_get_query(uri) : NULL;

	return query != NULL ? query : "";
}

const char *
hr_serve_header(const struct hr_serve_request *q, const char *name)
{
	return q->req != NULL ? evhttp_find_header(evhttp_request_get_input_headers(q->req), name)
			      : NULL;
}

struct hr_span
hr_serve_body(const struct hr_serve_request *q)
{
	struct evbuffer *in = q->req != NULL ? evhttp_request_get_input_buffer(q->req) : NULL;
	size_t len = in != NULL ? evbuffer_get_length(in) : 0;
	const unsigned char *p = len > 0 ? evbuffer_pullup(in, -1) : NULL;

	return (struct hr_span){(const char *)p, p != NULL ? len : 0};
}

void
hr_serve_drop(struct hr_serve_request *q)
{
	struct evbuffer *in = q->req != NULL ? evhttp_request_get_input_buffer(q->req) : NULL;

	if (in != NULL)
		(void)evbuffer_drain(in, evbuffer_get_length(in));
}

static struct bufferevent *
socket_of(const struct hr_serve_request *q)
{
	return q->req != NULL ? evhttp_connection_get_bufferevent(q->connection) : NULL;
}

/* Prepares for a body that still arrives, if nginx announces one. */
static int
body_open(struct hr_serve_request *q)
{
	const char *method = hr_serve_header(q, "X-HTTP-Method-Override"), *text;
	struct body *b;

	if (method == NULL || evhttp_request_get_command(q->req) != EVHTTP_REQ_TRACE)
		return 0;
	b = q->body = calloc(1, sizeof(*b));
	if (b == NULL)
		return -1;
	b->method = method;
	hr_buf_init(&b->piece.body, PIECE);
	hr_http_reader_init(&b->reader, &b->none, &b->piece);
	text = hr_serve_header(q, "Content-Length");
	b->reader.left = text != NULL ? strtoull(text, NULL, 10) : 0;
	b->reader.part = b->reader.left > 0 ? HR_HTTP_LENGTH : HR_HTTP_DONE;
	if (hr_serve_header(q, "Transfer-Encoding") != NULL)
		b->reader.part = HR_HTTP_CHUNK;
	/* libevent would take the rest of an early answer's body for a request */
	hr_serve_set(q, "Connection", "close");
	return 0;
}

int
hr_serve_take(struct hr_serve_request *q, struct hr_span *ret)
{
	struct body *b = q->body;
	struct hr_buf *bytes;
	struct bufferevent *be = socket_of(q);
	char piece[PIECE];
	int n;

	*ret = (struct hr_span){NULL, 0};
	if (b == NULL) /* the request did not come by TRACE */
		return -1;
	bytes = &b->piece.body;
	hr_buf_reset(bytes);
	while (be != NULL && b->reader.part != HR_HTTP_DONE && bytes->len == 0 &&
	       (n = evbuffer_remove(bufferevent_get_input(be), piece, sizeof(piece))) > 0)
		if (hr_http_reader_feed(&b->reader, piece, (size_t)n, NULL) != 0)
			return -1;
	*ret = hr_span_of_buf(bytes);
	if (ret->len == 0 && b->reader.part == HR_HTTP_DONE)
		return 0;
	return ret->len > 0 || (be != NULL && !b->cut) ? 1 : -1;
}

static void
on_arrived(struct bufferevent *be, void *arg)
{
	const struct hr_serve_request *q = arg;

	(void)be;
	q->body->arrived(q->body->arg);
}

static void
on_cut(struct bufferevent *be, short what, void *arg)
{
	struct hr_serve_request *q = arg;

	(void)what;
	q->body->cut = true;
	on_arrived(be, q);
}

bool
hr_serve_is_cut(const struct hr_serve_request *q)
{
	return q->body != NULL && q->body->cut;
}

void
hr_serve_read(struct hr_serve_request *q, hr_serve_event_fn *arrived, void *arg)
{
	struct bufferevent *be = socket_of(q);

	if (q->body == NULL || be == NULL || arrived == NULL)
		return;
	q->body->arrived = arrived;
	q->body->arg = arg;
	bufferevent_setwatermark(be, EV_READ, 0, PIECES_MAX);
	bufferevent_setcb(be, on_arrived, NULL, on_cut, q);
	(void)bufferevent_enable(be, EV_READ);
}

/* ---- the answer ---- */

void
hr_serve_set(struct hr_serve_request *q, const char *name, const char *value)
{
	if (q->req != NULL)
		(void)evhttp_add_header(evhttp_request_get_output_headers(q->req), name, value);
}

static struct evbuffer *
buffer_of(const void *p, size_t len)
{
	struct evbuffer *b = evbuffer_new();

	if (b != NULL && len > 0 && evbuffer_add(b, p, len) != 0) {
		evbuffer_free(b);
		b = NULL;
	}
	return b;
}

static void
drop_rest(struct bufferevent *be, void *arg)
{
	struct evbuffer *in = bufferevent_get_input(be);

	(void)arg;
	(void)evbuffer_drain(in, evbuffer_get_length(in));
}

static void
on_rest_end(struct bufferevent *be, short what, void *arg)
{
	(void)be;
	(void)what;
	evhttp_connection_free(arg);
}

/* Ends the stream of an early answer. nginx loses an answer if the connection is closed while it
 * still sends the body, so the rest is read until nginx, which has the answer, closes. libevent
 * sends no chunks with a status that has no body, such as 204, or to a client of HTTP/1.0. */
static void
end_early(struct hr_serve_request *q)
{
	static const struct timeval most = {.tv_sec = REST_S};
	struct evhttp_connection *connection = q->connection;
	struct bufferevent *be = socket_of(q);
	const bool chunks = evhttp_find_header(evhttp_request_get_output_headers(q->req),
				"Transfer-Encoding") != NULL;

	request_free(q);
	bufferevent_setcb(be, drop_rest, NULL, on_rest_end, connection);
	bufferevent_set_timeouts(be, &most, &most);
	drop_rest(be, NULL);
	if (bufferevent_enable(be, EV_READ | EV_WRITE) != 0 ||
	    (chunks && bufferevent_write(be, "0\r\n\r\n", 5) != 0))
		evhttp_connection_free(connection);
}

static bool
is_early(const struct hr_serve_request *q)
{
	return q->req != NULL && q->body != NULL && !q->body->cut &&
	       q->body->reader.part != HR_HTTP_DONE;
}

void
hr_serve_answer(struct hr_serve_request *q, int status, const char *type, const void *p, size_t len)
{
	struct evhttp_request *req = q->req;
	struct evbuffer *body = buffer_of(p, len);

	if (type != NULL)
		hr_serve_set(q, "Content-Type", type);
	if (is_early(q)) {
		evhttp_send_reply_start(req, body != NULL ? status : 503, NULL);
		hr_serve_send(q, p, len);
		end_early(q);
		req = NULL;
	} else {
		request_free(q);
	}
	if (req != NULL)
		evhttp_send_reply(req, body != NULL ? status : 503, NULL, body);
	if (body != NULL)
		evbuffer_free(body);
}

void
hr_serve_start(struct hr_serve_request *q, const char *type)
{
	if (q->req == NULL)
		return;
	if (type != NULL)
		hr_serve_set(q, "Content-Type", type);
	hr_serve_set(q, "X-Accel-Buffering", "no");
	evhttp_send_reply_start(q->req, 200, NULL);
	if (q->body == NULL) {
		hr_serve_drop(q);
		evhttp_clear_headers(evhttp_request_get_input_headers(q->req));
	}
}

static void
on_drained(struct evhttp_connection *connection, void *arg)
{
	struct hr_serve_request *q = arg;

	(void)connection;
	if (q->drained != NULL)
		q->drained(q->arg);
}

void
hr_serve_send(struct hr_serve_request *q, const void *p, size_t len)
{
	struct evbuffer *b;

	if (q->req == NULL || len == 0)
		return;
	b = buffer_of(p, len);
	if (b == NULL)
		return;
	evhttp_send_reply_chunk_with_cb(q->req, b, on_drained, q);
	evbuffer_free(b);
}

size_t
hr_serve_pending(const struct hr_serve_request *q)
{
	struct bufferevent *be = socket_of(q);

	return be != NULL ? evbuffer_get_length(bufferevent_get_output(be)) : 0;
}

void
hr_serve_end(struct hr_serve_request *q, bool whole)
{
	struct evhttp_request *req = q->req;
	struct evhttp_connection *connection = q->connection;

	if (whole && is_early(q)) {
		end_early(q);
		return;
	}
	request_free(q);
	if (req != NULL && whole)
		evhttp_send_reply_end(req);
	else if (req != NULL)
		evhttp_connection_free(connection);
}

void
hr_serve_watch(
    struct hr_serve_request *q, hr_serve_event_fn *drained, hr_serve_event_fn *left, void *arg)
{
	q->drained = drained;
	q->left = left;
	q->arg = arg;
}

/* ---- connections ---- */

/* Handles a connection closed by nginx or by this process; a connection has at most one request
 * here. */
static void
on_closed(struct evhttp_connection *connection, void *arg)
{
	struct hr_serve *s = arg;
	struct hr_serve_request *q;
	struct evhttp_request *req;

	LIST_FOREACH(q, &s->requests, entry)
	{
		if (q->req != NULL && q->connection == connection)
			break;
	}
	if (q == NULL)
		return;
	req = q->req;
	q->req = NULL;
	if (evhttp_request_get_connection(req) == NULL)
		evhttp_send_reply_end(req);
	if (q->left != NULL)
		q->left(q->arg);
}

static void
on_request(struct evhttp_request *req, void *arg)
{
	struct hr_serve *s = arg;
	struct hr_serve_request *q = calloc(1, sizeof(*q));

	if (q == NULL) {
		evhttp_send_error(req, 503, NULL);
		return;
	}
	q->req = req;
	q->connection = evhttp_request_get_connection(req);
	LIST_INSERT_HEAD(&s->requests, q, entry);
	evhttp_connection_set_closecb(q->connection, on_closed, s);
	if (body_open(q) == 0)
		s->fn(s->arg, q);
	else
		hr_serve_answer(q, 503, NULL, NULL, 0);
}

struct hr_serve *
hr_serve_open(struct hr_loop *loop, int listener, size_t body_max, hr_serve_fn *fn, void *arg,
    struct hr_err *err)
{
	struct hr_serve *s;

	/* libevent accepts until EAGAIN */
	if (hr_fd_nonblock(listener, true, err) < 0)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return hr_err_null(err);
	LIST_INIT(&s->requests);
	s->fn = fn;
	s->arg = arg;
	s->http = evhttp_new(hr_loop_base(loop));
	if (s->http == NULL) {
		free(s);
		return hr_err_null(err);
	}
	evhttp_set_max_body_size(s->http, (ev_ssize_t)body_max);
	evhttp_set_max_headers_size(s->http, HEADERS_MAX);
	evhttp_set_timeout(s->http, TIMEOUT_S);
	evhttp_set_default_content_type(s->http, NULL);
	evhttp_set_allowed_methods(s->http,
	    EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD | EVHTTP_REQ_PUT |
		EVHTTP_REQ_DELETE | EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH | EVHTTP_REQ_TRACE);
	evhttp_set_gencb(s->http, on_request, s);
	if (evhttp_accept_socket(s->http, listener) != 0) {
		(void)hr_err_set(err, HR_E_SYS, "the socket for HTTP cannot be used");
		hr_serve_close(s);
		return NULL;
	}
	return s;
}

void
hr_serve_close(struct hr_serve *s)
{
	struct hr_serve_request *q;

	if (s == NULL)
		return;
	LIST_FOREACH(q, &s->requests, entry)
	{
		q->left = NULL;
	}
	evhttp_free(s->http);
	free(s);
}
