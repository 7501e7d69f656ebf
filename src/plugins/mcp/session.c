/* Manages the clients of the proxy, and has helpers for all parts. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <json-c/json.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/random.h"
#include "http/serve.h"
#include "plugins/mcp/hub.h"
#include "proto/json.h"

#define TEXT_MAX (256u << 20)
/* maximum; since streamable sessions never end by themselves, the oldest is dropped */
#define SESSIONS_MAX 1000

char *
mcp_text(struct json_object *v)
{
	HR_BUF(b, TEXT_MAX);

	hr_json_put_whole(&b, v);
	return hr_buf_take(&b);
}

/* Cuts the stream, so that its client sees a broken one. Frees a session that is its stream. */
static void
session_cut(struct mcp_session *s)
{
	struct hr_serve_request *stream = s->stream;

	s->stream = NULL;
	s->slow = false;
	if (stream != NULL)
		hr_serve_end(stream, false);
	if (!s->streamable)
		mcp_session_free(s);
}

static void
session_ping(void *arg)
{
	struct mcp_session *s = arg;
	char text[64];
	time_t now = time(NULL);
	struct tm tm;

	(void)hr_watch_arm(s->ping, (int64_t)s->hub->ping_s * 1000, NULL);
	if (s->slow) {
		session_cut(s);
		return;
	}
	(void)gmtime_r(&now, &tm);
	(void)strftime(text, sizeof(text), ": ping - %Y-%m-%d %H:%M:%S+00:00\r\n\r\n", &tm);
	/* a client that reads nothing needs no further pings */
	if (s->stream != NULL && hr_serve_pending(s->stream) == 0)
		mcp_http_event(s->stream, NULL, text);
}

struct mcp_session *
mcp_session_new(struct mcp_hub *hub, bool streamable)
{
	struct mcp_session *s = calloc(1, sizeof(*s)), *other;
	size_t n = 0;

	if (s == NULL || hr_random_hex(s->id, 32, NULL) < 0) {
		free(s);
		return NULL;
	}
	s->hub = hub;
	s->streamable = streamable;
	TAILQ_INIT(&s->calls);
	s->ping = hr_loop_timer(hub->loop, session_ping, s, NULL);
	if (s->ping == NULL || hr_watch_arm(s->ping, (int64_t)hub->ping_s * 1000, NULL) != 0) {
		hr_watch_free(s->ping);
		free(s);
		return NULL;
	}
	TAILQ_FOREACH(other, &hub->sessions, entry)
	{
		n += other->streamable;
	}
	/* the oldest one that nobody uses gives its place */
	TAILQ_FOREACH(other, &hub->sessions, entry)
	{
		if (n >= SESSIONS_MAX && other->streamable && other->stream == NULL &&
		    TAILQ_EMPTY(&other->calls)) {
			mcp_session_free(other);
			break;
		}
	}
	TAILQ_INSERT_TAIL(&hub->sessions, s, entry);
	return s;
}

void
mcp_session_free(struct mcp_session *s)
{
	struct hr_serve_request *stream = s->stream;

	while (!TAILQ_EMPTY(&s->calls))
		mcp_call_cancel(TAILQ_FIRST(&s->calls));
	TAILQ_REMOVE(&s->hub->sessions, s, entry);
	hr_watch_free(s->ping);
	s->stream = NULL;
	free(s);
	if (stream != NULL)
		hr_serve_end(stream, true);
}

struct mcp_session *
mcp_session_find(struct mcp_hub *hub, const char *id, bool streamable)
{
	struct mcp_session *s;

	TAILQ_FOREACH(s, &hub->sessions, entry)
	{
		if (s->streamable == streamable && strcmp(s->id, id) == 0)
			return s;
	}
	return NULL;
}

void
mcp_session_notify(struct mcp_session *s, struct json_object *message)
{
	if (message == NULL)
		hr_log(HR_LOG_ERROR, "out of memory: a message to a client is lost");
	else if (s->stream == NULL || s->slow)
		return;
	else if (hr_serve_pending(s->stream) <= MCP_UNREAD_MAX)
		mcp_http_message(s->stream, message);
	else {
		hr_log(HR_LOG_WARNING,
		    "an MCP client does not read its stream, which is closed: %u MiB wait for it",
		    MCP_UNREAD_MAX >> 20);
		/* callers walk through the sessions */
		s->slow = true;
		(void)hr_watch_arm(s->ping, 0, NULL);
	}
}

void
mcp_hub_notify(struct mcp_hub *hub, const char *method, struct json_object *params)
{
	HR_PUT struct json_object *m = hr_json_object(NULL, "jsonrpc",
	    json_object_new_string("2.0"), "method", json_object_new_string(method),
	    params != NULL ? "params" : NULL, json_object_get(params), NULL);
	struct mcp_session *s;

	TAILQ_FOREACH(s, &hub->sessions, entry)
	{
		if (s->initialized)
			mcp_session_notify(s, m);
	}
}
