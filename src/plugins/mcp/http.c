/* Serves HTTP: the SSE stream with its separate messages (/mcp/sse, /mcp/messages/), and the single
 * path /mcp/shttp. nginx has checked the key. Invariant: a kept request (a session's stream, a
 * call's reply) is ended when its client leaves. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/text/percent.h"
#include "http/serve.h"
#include "plugins/mcp/hub.h"
#include "proto/json.h"

#define BODY_MAX (64u << 20)
#define PATH_MAX_LEN 256 /* bytes of a path; longer ones lead nowhere */

#define STREAM "text/event-stream; charset=utf-8"

static void
send_plain(struct hr_serve_request *q, int status, const char *text)
{
	hr_serve_answer(
	    q, status, text[0] != '\0' ? "text/plain; charset=utf-8" : NULL, text, strlen(text));
}

static void
send_detail(struct hr_serve_request *q, int status, const char *text)
{
	char body[160];

	(void)snprintf(body, sizeof(body), "{\"detail\":\"%s\"}", text);
	hr_serve_answer(q, status, "application/json", body, strlen(body));
}

void
mcp_http_event(struct hr_serve_request *q, const char *event, const char *data)
{
	HR_BUF(text, strlen(data) + 128);

	if (event != NULL)
		hr_buf_addf(&text, "event: %s\r\ndata: ", event);
	hr_buf_adds(&text, data);
	if (event != NULL)
		hr_buf_adds(&text, "\r\n\r\n");
	if (hr_buf_check(&text, NULL) != 0)
		hr_log(HR_LOG_ERROR, "out of memory: an event for a client is lost");
	else
		hr_serve_send(q, hr_buf_str(&text), text.len);
}

void
mcp_http_message(struct hr_serve_request *q, struct json_object *message)
{
	HR_FREE char *text = message != NULL ? mcp_text(message) : NULL;

	if (text == NULL)
		hr_log(HR_LOG_ERROR, "out of memory: a message to a client is lost");
	else
		mcp_http_event(q, "message", text);
}

static void
start_stream(struct hr_serve_request *q)
{
	hr_serve_set(q, "Cache-Control", "no-store");
	hr_serve_start(q, STREAM);
}

static void
stream_left(void *arg)
{
	struct mcp_session *s = arg;

	if (s->streamable) {
		hr_serve_end(s->stream, true);
		s->stream = NULL;
	} else {
		mcp_session_free(s);
	}
}

/* Makes the response the session's stream. */
static void
open_stream(struct mcp_session *s, struct hr_serve_request *q)
{
	start_stream(q);
	hr_serve_watch(q, NULL, stream_left, s);
	s->stream = q;
	s->slow = false;
}

static struct json_object *
read_message(struct hr_serve_request *q)
{
	const struct hr_span body = hr_serve_body(q);

	return body.p != NULL ? mcp_rpc_parse(body.p, body.len) : NULL;
}

/* ---- the stream and its messages ---- */

static void
on_sse(struct mcp_hub *hub, struct hr_serve_request *q)
{
	struct mcp_session *s;
	char text[80];

	if (strcmp(hr_serve_method(q), "GET") != 0) {
		send_detail(q, 405, "Method Not Allowed");
		return;
	}
	s = mcp_session_new(hub, false);
	if (s == NULL) {
		send_detail(q, 503, "Service Unavailable");
		return;
	}
	open_stream(s, q);
	(void)snprintf(text, sizeof(text), "/mcp/messages/?session_id=%s", s->id);
	mcp_http_event(q, "endpoint", text);
}

static bool
is_id(const char *id)
{
	return strlen(id) == 32 && strspn(id, "0123456789abcdefABCDEF") == 32;
}

/* Copies session_id of the query, cut at cap; an id needs no encoding. Returns false if it is
 * missing. */
static bool
find_id(const struct hr_serve_request *q, char *id, size_t cap)
{
	static const char name[] = "session_id=";
	const size_t n = sizeof(name) - 1;
	const char *p;
	size_t len;

	for (p = hr_serve_query(q); *p != '\0'; p += len + (p[len] == '&')) {
		len = strcspn(p, "&");
		if (len < n || memcmp(p, name, n) != 0)
			continue;
		(void)snprintf(id, cap, "%.*s", (int)(len - n), p + n);
		return true;
	}
	return false;
}

static void
on_message(struct mcp_hub *hub, struct hr_serve_request *q)
{
	struct mcp_session *s;
	HR_PUT struct json_object *m = NULL;
	char id[40];

	if (strcmp(hr_serve_method(q), "POST") != 0) {
		send_detail(q, 405, "Method Not Allowed");
		return;
	}
	if (!find_id(q, id, sizeof(id))) {
		send_plain(q, 400, "session_id is required");
		return;
	}
	s = mcp_session_find(hub, id, false);
	if (s == NULL) {
		send_plain(q, is_id(id) ? 404 : 400,
		    is_id(id) ? "Could not find session" : "Invalid session ID");
		return;
	}
	m = read_message(q);
	if (m == NULL) {
		send_plain(q, 400, "Could not parse message");
		return;
	}
	send_plain(q, 202, "Accepted");
	(void)mcp_rpc_message(s, m, NULL);
}

/* ---- the single path ---- */

static bool
accepts(struct hr_serve_request *q, bool json)
{
	const char *a = hr_serve_header(q, "Accept");

	if (a == NULL)
		return false;
	return (!json || strstr(a, "application/json") != NULL || strstr(a, "*/*") != NULL) &&
	       (strstr(a, "text/event-stream") != NULL || strstr(a, "*/*") != NULL);
}

/* Returns the session, or NULL after it has sent the error response. */
static struct mcp_session *
session_of(struct mcp_hub *hub, struct hr_serve_request *q)
{
	const char *id = hr_serve_header(q, "Mcp-Session-Id");
	struct mcp_session *s = id != NULL ? mcp_session_find(hub, id, true) : NULL;

	if (id == NULL)
		send_detail(q, 400, "Bad Request: Missing session ID");
	else if (s == NULL)
		send_detail(q, 404, "Session not found");
	return s;
}

static void
shttp_post(struct mcp_hub *hub, struct hr_serve_request *q)
{
	struct mcp_session *s;
	HR_PUT struct json_object *m = NULL;

	if (!accepts(q, true)) {
		send_detail(q, 406,
		    "Not Acceptable: Client must accept both application/json "
		    "and text/event-stream");
		return;
	}
	m = read_message(q);
	if (m == NULL) {
		send_detail(q, 400, "Could not parse message");
		return;
	}
	if (strcmp(hr_json_text_or(m, "method", ""), "initialize") == 0) {
		s = mcp_session_new(hub, true);
		if (s == NULL)
			send_detail(q, 503, "Service Unavailable");
	} else {
		s = session_of(hub, q);
	}
	if (s == NULL)
		return;
	hr_serve_set(q, "mcp-session-id", s->id);
	if (hr_json_text_or(m, "method", "")[0] == '\0' || mcp_rpc_id(m) == NULL) {
		(void)mcp_rpc_message(s, m, NULL);
		send_plain(q, 202, "");
	} else {
		start_stream(q);
		(void)mcp_rpc_message(s, m, q);
	}
}

static void
shttp_get(struct mcp_hub *hub, struct hr_serve_request *q)
{
	struct mcp_session *s;

	if (!accepts(q, false)) {
		send_detail(q, 406, "Not Acceptable: Client must accept text/event-stream");
		return;
	}
	s = session_of(hub, q);
	if (s == NULL)
		return;
	if (s->stream != NULL) {
		send_detail(q, 409, "Conflict: Only one SSE stream is allowed per session");
		return;
	}
	open_stream(s, q);
	mcp_http_event(q, NULL, ": open\r\n\r\n"); /* sends the head */
}

static void
on_shttp(struct mcp_hub *hub, struct hr_serve_request *q)
{
	const char *method = hr_serve_method(q);
	struct mcp_session *s;

	if (strcmp(method, "POST") == 0) {
		shttp_post(hub, q);
	} else if (strcmp(method, "GET") == 0) {
		shttp_get(hub, q);
	} else if (strcmp(method, "DELETE") != 0) {
		send_detail(q, 405, "Method Not Allowed");
	} else if ((s = session_of(hub, q)) != NULL) {
		mcp_session_free(s);
		send_plain(q, 200, "");
	}
}

static void
on_request(void *arg, struct hr_serve_request *q)
{
	static const struct {
		const char *path;
		void (*handle)(struct mcp_hub *hub, struct hr_serve_request *q);
	} routes[] = {
	    {"/mcp/sse", on_sse}, {"/mcp/messages/", on_message}, {"/mcp/shttp", on_shttp}};
	const char *sent = hr_serve_path(q);
	struct mcp_hub *hub = arg;
	HR_BUF(path, PATH_MAX_LEN);
	size_t i;

	hr_percent_decode(&path, sent, strlen(sent), false);
	for (i = 0; hub->mounted && i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (strcmp(hr_buf_str(&path), routes[i].path) == 0) {
			routes[i].handle(hub, q);
			return;
		}
	}
	send_detail(q, 404, "Not Found");
}

int
mcp_http_open(struct mcp_hub *hub, int listener, struct hr_err *err)
{
	hub->http = hr_serve_open(hub->loop, listener, BODY_MAX, on_request, hub, err);
	return hub->http != NULL ? 0 : -1;
}
