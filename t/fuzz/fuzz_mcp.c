/* JSON-RPC of the MCP proxy, from its clients and from the servers that it started. The input is
 * lines, each with who says it in its first byte: c, a client on its stream; r, one by a request of
 * its own; 1 and 2, a server. What must hold: all that a client is told is JSON-RPC, a request of
 * its own is ended once and is told nothing after that. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "base/log.h"
#include "base/loop.h"
#include "http/serve.h"
#include "plugins/mcp/hub.h"
#include "proto/json.h"
#include "fuzz.h"

#define REPLIES 256

static struct {
	bool begun, ended;
} replies[REPLIES + 1]; /* the last one is the stream */
static struct mcp_hub hub;

/* ---- in the place of http.c and serve.c ---- */

static size_t
index_of(struct hr_serve_request *q)
{
	size_t i = (size_t)((char *)q - (char *)replies) / sizeof(replies[0]);

	must(i <= REPLIES && replies[i].begun && !replies[i].ended);
	return i;
}

void
mcp_http_event(struct hr_serve_request *q, const char *event, const char *data)
{
	(void)event;
	(void)data;
	(void)index_of(q);
}

void
mcp_http_message(struct hr_serve_request *q, struct json_object *message)
{
	HR_PUT struct json_object *again = NULL;
	struct hr_json_error e;
	HR_FREE char *text = mcp_text(message);

	(void)index_of(q);
	must(text != NULL);
	must(hr_json_decode(text, strlen(text), &again, &e) == 0);
	must(hr_json_str_is(hr_json_at(again, "jsonrpc"), "2.0"));
	must((hr_json_at(again, "id") != NULL) == (hr_json_at(again, "method") == NULL));
}

void
hr_serve_end(struct hr_serve_request *q, bool whole)
{
	must(whole);
	replies[index_of(q)].ended = true;
}

size_t
hr_serve_pending(const struct hr_serve_request *q)
{
	(void)q;
	return 0;
}

void
hr_serve_watch(
    struct hr_serve_request *q, hr_serve_event_fn *drained, hr_serve_event_fn *left, void *arg)
{
	(void)drained;
	(void)left;
	(void)arg;
	(void)index_of(q);
}

/* ---- ---- */

static struct hr_serve_request *
reply_at(size_t i)
{
	replies[i].begun = true;
	return (struct hr_serve_request *)(void *)&replies[i];
}

/* One that runs, without a process: what it is told goes nowhere. */
static void
add_server(const char *name)
{
	struct json_object *config =
	    hr_json_object(NULL, "name", json_object_new_string(name), NULL);
	struct mcp_child *c = mcp_child_new(&hub, config);

	must(config != NULL && c != NULL);
	c->state = MCP_CHILD_READY;
	TAILQ_INSERT_TAIL(&hub.children, c, entry);
}

static void
say(struct mcp_session *s, char who, const uint8_t *p, size_t len, size_t *io_replies)
{
	struct mcp_child *c = TAILQ_FIRST(&hub.children);
	struct json_object *m;

	if (who == '2' && TAILQ_NEXT(c, entry) != NULL)
		c = TAILQ_NEXT(c, entry);
	if (who == '1' || who == '2') {
		mcp_child_line(c, (const char *)p, len);
	} else if ((who == 'c' || who == 'r') && (m = mcp_rpc_parse(p, len)) != NULL) {
		/* as http.c does it: what is no request has no answer */
		if (who == 'r' && *io_replies < REPLIES && mcp_rpc_id(m) != NULL &&
		    hr_json_text_or(m, "method", "")[0] != '\0')
			must(mcp_rpc_message(s, m, reply_at((*io_replies)++)));
		else
			(void)mcp_rpc_message(s, m, NULL);
		json_object_put(m);
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *p = data, *end = data + size, *eol;
	struct mcp_session *s;
	struct mcp_child *c;
	size_t n = 0, i;

	if (hub.loop == NULL) {
		hr_log_setup("mcp", HR_LOG_CHILD, HR_LOG_ERROR); /* not what is no message */
		hub.loop = hr_loop_new(NULL);
		hub.ping_s = 15;
		TAILQ_INIT(&hub.children);
		TAILQ_INIT(&hub.sessions);
	}
	memset(replies, 0, sizeof(replies));
	s = mcp_session_new(&hub, false);
	must(s != NULL);
	s->stream = reply_at(REPLIES);
	add_server("a");
	if (size > 0 && data[0] != '1') /* whose name begins with the other's */
		add_server("a_b");
	for (; p < end; p = eol + 1) {
		eol = memchr(p, '\n', (size_t)(end - p));
		if (eol == NULL)
			eol = end;
		if (eol > p)
			say(s, (char)*p, p + 1, (size_t)(eol - p - 1), &n);
	}
	if (size % 2 == 0)
		mcp_session_free(s);
	while ((c = TAILQ_FIRST(&hub.children)) != NULL) {
		TAILQ_REMOVE(&hub.children, c, entry);
		mcp_child_free(c);
	}
	if (size % 2 != 0)
		mcp_session_free(s);
	for (i = 0; i < n; i++)
		must(replies[i].ended);
	must(replies[REPLIES].ended);
	return 0;
}
