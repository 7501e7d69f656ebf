/* Serves HTTP: the SSE stream with its separate messages (/mcp/sse, /mcp/messages/), and the single
 * path /mcp/shttp. nginx has checked the key. Invariant: a kept request (a session's stream, a
 * call's reply) is dropped in closed(), after which libevent frees it. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/http_struct.h>
#include <event2/keyvalq_struct.h>
#include <json-c/json.h>

#include "base/fd.h"
#include "base/log.h"
#include "plugins/mcp/hub.h"
#include "proto/json.h"

#define BODY_MAX (64u << 20)
#define HEADERS_MAX (256u << 10)
#define TIMEOUT_S (7 * 86400) /* seconds; nginx has the shorter timeout */

#define STREAM "text/event-stream; charset=utf-8"

static void
send_text(
    struct evhttp_request *req, int status, const char *reason, const char *type, const char *text)
{
	struct evbuffer *body = evbuffer_new();
	struct evkeyvalq *out = evhttp_request_get_output_headers(req);

	if (text[0] != '\0')
		(void)evhttp_add_header(out, "Content-Type", type);
	if (body != NULL)
		(void)evbuffer_add(body, text, strlen(text));
	evhttp_send_reply(req, status, reason, body);
	if (body != NULL)
		evbuffer_free(body);
}

static void
send_plain(struct evhttp_request *req, int status, const char *reason, const char *text)
{
	send_text(req, status, reason, "text/plain; charset=utf-8", text);
}

static void
send_detail(struct evhttp_request *req, int status, const char *reason)
{
	char text[100];

	(void)snprintf(text, sizeof(text), "{\"detail\":\"%s\"}", reason);
	send_text(req, status, reason, "application/json", text);
}

void
mcp_http_event(struct evhttp_request *req, const char *event, const char *data)
{
	struct evbuffer *b = evbuffer_new();

	if (b == NULL)
		return;
	if (event != NULL)
		(void)evbuffer_add_printf(b, "event: %s\r\ndata: ", event);
	(void)evbuffer_add(b, data, strlen(data));
	if (event != NULL)
		(void)evbuffer_add(b, "\r\n\r\n", 4);
	evhttp_send_reply_chunk(req, b);
	evbuffer_free(b);
}

void
mcp_http_message(struct evhttp_request *req, struct json_object *message)
{
	HR_FREE char *text = message != NULL ? mcp_text(message) : NULL;

	if (text == NULL)
		hr_log(HR_LOG_ERROR, "out of memory: a message to a client is lost");
	else
		mcp_http_event(req, "message", text);
}

void
mcp_http_end(struct evhttp_request *req)
{
	evhttp_send_reply_end(req);
}

/* Returns true if the connection of the request has closed. libevent frees a request with its
 * connection, except one cut off during its reply, which has no connection any more and must be
 * ended here. */
static bool
is_gone(struct evhttp_request *req, const struct evhttp_connection *connection)
{
	const struct evhttp_connection *its = evhttp_request_get_connection(req);

	if (its == NULL)
		evhttp_send_reply_end(req);
	return its == NULL || its == connection;
}

/* Handles a connection closed by nginx or by this process. */
static void
closed(struct evhttp_connection *connection, void *arg)
{
	struct mcp_hub *hub = arg;
	struct mcp_session *s, *next;
	struct mcp_call *call, *other;

	for (s = TAILQ_FIRST(&hub->sessions); s != NULL; s = next) {
		next = TAILQ_NEXT(s, entry);
		for (call = TAILQ_FIRST(&s->calls); call != NULL; call = other) {
			other = TAILQ_NEXT(call, entry);
			if (call->reply != NULL && is_gone(call->reply, connection)) {
				call->reply = NULL;
				mcp_call_cancel(call);
			}
		}
		if (s->stream == NULL || !is_gone(s->stream, connection))
			continue;
		s->stream = NULL;
		if (!s->streamable)
			mcp_session_free(s);
	}
}

static void
start_stream(struct mcp_hub *hub, struct evhttp_request *req)
{
	struct evkeyvalq *out = evhttp_request_get_output_headers(req);

	(void)evhttp_add_header(out, "Content-Type", STREAM);
	(void)evhttp_add_header(out, "Cache-Control", "no-store");
	(void)evhttp_add_header(out, "X-Accel-Buffering", "no");
	evhttp_connection_set_closecb(evhttp_request_get_connection(req), closed, hub);
	evhttp_send_reply_start(req, 200, "OK");
}

static struct json_object *
read_message(struct evhttp_request *req)
{
	struct evbuffer *in = evhttp_request_get_input_buffer(req);
	size_t len = evbuffer_get_length(in);
	const unsigned char *p = evbuffer_pullup(in, -1);

	return p != NULL ? mcp_rpc_parse(p, len) : NULL;
}

/* ---- the stream and its messages ---- */

static void
on_sse(struct evhttp_request *req, void *arg)
{
	struct mcp_hub *hub = arg;
	struct mcp_session *s;
	char text[80];

	if (!hub->mounted) {
		send_detail(req, 404, "Not Found");
		return;
	}
	if (evhttp_request_get_command(req) != EVHTTP_REQ_GET) {
		send_detail(req, 405, "Method Not Allowed");
		return;
	}
	s = mcp_session_new(hub, false);
	if (s == NULL) {
		send_detail(req, 503, "Service Unavailable");
		return;
	}
	start_stream(hub, req);
	s->stream = req;
	(void)snprintf(text, sizeof(text), "/mcp/messages/?session_id=%s", s->id);
	mcp_http_event(req, "endpoint", text);
}

static bool
is_id(const char *id)
{
	return strlen(id) == 32 && strspn(id, "0123456789abcdefABCDEF") == 32;
}

static void
on_message(struct evhttp_request *req, void *arg)
{
	struct mcp_hub *hub = arg;
	const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req)), *id;
	struct mcp_session *s = NULL;
	HR_PUT struct json_object *m = NULL;
	struct evkeyvalq q;

	if (!hub->mounted) {
		send_detail(req, 404, "Not Found");
		return;
	}
	if (evhttp_request_get_command(req) != EVHTTP_REQ_POST) {
		send_detail(req, 405, "Method Not Allowed");
		return;
	}
	TAILQ_INIT(&q);
	(void)evhttp_parse_query_str(query != NULL ? query : "", &q);
	id = evhttp_find_header(&q, "session_id");
	if (id != NULL)
		s = mcp_session_find(hub, id, false);
	if (id == NULL)
		send_plain(req, 400, "Bad Request", "session_id is required");
	else if (s == NULL && !is_id(id))
		send_plain(req, 400, "Bad Request", "Invalid session ID");
	else if (s == NULL)
		send_plain(req, 404, "Not Found", "Could not find session");
	evhttp_clear_headers(&q);
	if (s == NULL)
		return;
	m = read_message(req);
	if (m == NULL) {
		send_plain(req, 400, "Bad Request", "Could not parse message");
		return;
	}
	send_plain(req, 202, "Accepted", "Accepted");
	(void)mcp_rpc_message(s, m, NULL);
}

/* ---- the single path ---- */

static bool
accepts(struct evhttp_request *req, bool json)
{
	const char *a = evhttp_find_header(evhttp_request_get_input_headers(req), "Accept");

	if (a == NULL)
		return false;
	return (!json || strstr(a, "application/json") != NULL || strstr(a, "*/*") != NULL) &&
	       (strstr(a, "text/event-stream") != NULL || strstr(a, "*/*") != NULL);
}

/* Returns the session, or NULL after it has sent the error response. */
static struct mcp_session *
session_of(struct mcp_hub *hub, struct evhttp_request *req)
{
	const char *id =
	    evhttp_find_header(evhttp_request_get_input_headers(req), "Mcp-Session-Id");
	struct mcp_session *s = id != NULL ? mcp_session_find(hub, id, true) : NULL;

	if (id == NULL)
		send_detail(req, 400, "Bad Request: Missing session ID");
	else if (s == NULL)
		send_detail(req, 404, "Session not found");
	return s;
}

static void
shttp_post(struct mcp_hub *hub, struct evhttp_request *req)
{
	struct mcp_session *s;
	HR_PUT struct json_object *m = NULL;

	if (!accepts(req, true)) {
		send_detail(req, 406,
		    "Not Acceptable: Client must accept both application/json "
		    "and text/event-stream");
		return;
	}
	m = read_message(req);
	if (m == NULL) {
		send_detail(req, 400, "Could not parse message");
		return;
	}
	if (strcmp(hr_json_text_or(m, "method", ""), "initialize") == 0) {
		s = mcp_session_new(hub, true);
		if (s == NULL)
			send_detail(req, 503, "Service Unavailable");
	} else {
		s = session_of(hub, req);
	}
	if (s == NULL)
		return;
	(void)evhttp_add_header(evhttp_request_get_output_headers(req), "mcp-session-id", s->id);
	if (hr_json_text_or(m, "method", "")[0] == '\0' || mcp_rpc_id(m) == NULL) {
		(void)mcp_rpc_message(s, m, NULL);
		send_plain(req, 202, "Accepted", "");
	} else {
		start_stream(hub, req);
		(void)mcp_rpc_message(s, m, req);
	}
}

static void
shttp_get(struct mcp_hub *hub, struct evhttp_request *req)
{
	struct mcp_session *s;

	if (!accepts(req, false)) {
		send_detail(req, 406, "Not Acceptable: Client must accept text/event-stream");
		return;
	}
	s = session_of(hub, req);
	if (s == NULL)
		return;
	if (s->stream != NULL) {
		send_detail(req, 409, "Conflict: Only one SSE stream is allowed per session");
		return;
	}
	start_stream(hub, req);
	s->stream = req;
	mcp_http_event(req, NULL, ": open\r\n\r\n"); /* sends the head */
}

static void
on_shttp(struct evhttp_request *req, void *arg)
{
	struct mcp_hub *hub = arg;
	struct mcp_session *s;

	if (!hub->mounted) {
		send_detail(req, 404, "Not Found");
		return;
	}
	switch (evhttp_request_get_command(req)) {
	case EVHTTP_REQ_POST: shttp_post(hub, req); return;
	case EVHTTP_REQ_GET: shttp_get(hub, req); return;
	case EVHTTP_REQ_DELETE:
		s = session_of(hub, req);
		if (s == NULL)
			return;
		mcp_session_free(s);
		send_plain(req, 200, "OK", "");
		return;
	default: send_detail(req, 405, "Method Not Allowed");
	}
}

static void
on_other(struct evhttp_request *req, void *arg)
{
	(void)arg;
	send_detail(req, 404, "Not Found");
}

int
mcp_http_open(struct mcp_hub *hub, int listener, struct hr_err *err)
{
	/* libevent accepts until EAGAIN */
	if (hr_fd_nonblock(listener, true, err) < 0)
		return -1;
	hub->http = evhttp_new(hub->base);
	if (hub->http == NULL)
		return hr_err_nomem(err);
	evhttp_set_max_body_size(hub->http, BODY_MAX);
	evhttp_set_max_headers_size(hub->http, HEADERS_MAX);
	evhttp_set_timeout(hub->http, TIMEOUT_S);
	evhttp_set_allowed_methods(hub->http, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD |
						  EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
						  EVHTTP_REQ_OPTIONS | EVHTTP_REQ_PATCH);
	evhttp_set_gencb(hub->http, on_other, hub);
	if (evhttp_set_cb(hub->http, "/mcp/sse", on_sse, hub) != 0 ||
	    evhttp_set_cb(hub->http, "/mcp/messages/", on_message, hub) != 0 ||
	    evhttp_set_cb(hub->http, "/mcp/shttp", on_shttp, hub) != 0 ||
	    evhttp_accept_socket(hub->http, listener) != 0)
		return hr_err_set(err, HR_E_SYS, "the socket for HTTP cannot be used");
	return 0;
}
