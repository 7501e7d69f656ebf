/* hr_mcp: the parts of the MCP proxy. Servers that speak over stdin and stdout are started here;
 * their tools are offered to clients over HTTP, all of them as one server.
 *
 *   client -- http.c --> session.c --> rpc.c --> child.c --> process
 *
 * One thread, one libevent base. Nothing waits: each answer is a callback. */
#ifndef HR_PLUGINS_MCP_HUB_H
#define HR_PLUGINS_MCP_HUB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/err.h"

struct bufferevent;
struct event;
struct event_base;
struct evhttp;
struct evhttp_request;
struct json_object;

struct mcp_hub;

/* ---- child.c: one configured server ---- */

enum mcp_child_state {
	MCP_CHILD_OFF,      /* its first use starts it */
	MCP_CHILD_STARTING, /* was sent "initialize" */
	MCP_CHILD_READY,
};

struct mcp_pending;
/* result, or error (of JSON-RPC), or failure (in words): one of them. All borrowed. */
typedef void mcp_pending_fn(
    void *arg, struct json_object *result, struct json_object *error, const char *failure);
TAILQ_HEAD(mcp_pending_list, mcp_pending);

struct mcp_child {
	TAILQ_ENTRY(mcp_child) entry;
	struct mcp_hub *hub;
	struct json_object *config; /* name, command, args, env: checked and normal */
	const char *name;           /* in config */
	enum mcp_child_state state;
	bool due;  /* is started once its predecessor has ended */
	pid_t pid; /* 0: none; it leads its process group */
	struct bufferevent *in, *out;
	struct event *ended; /* its output is closed: does it end? NULL: nobody waits for that */
	int pidfd;           /* of that */
	struct mcp_pending_list pending;
	struct event *timer;
	int64_t next_id, failed_ms;
	struct json_object *tools; /* names of the last list, as keys; NULL: not known */
	char reason[200];          /* why it is off; "" otherwise */
	bool refused;              /* it ran, and the reason is what it said */
};
TAILQ_HEAD(mcp_child_list, mcp_child);

/* Takes config over. NULL: no memory. */
struct mcp_child *mcp_child_new(struct mcp_hub *hub, struct json_object *config);
void mcp_child_free(struct mcp_child *c); /* begins to end its process; what is pending fails */
void mcp_child_start(struct mcp_child *c);

/* Starts it if need be. fn is called once, never from within; params may be NULL. limit_s 0: none.
 * progress: fn's arg gets mcp_call_progress() for what the server reports meanwhile. NULL: no
 * memory, and fn is not called. */
struct mcp_pending *mcp_child_request(struct mcp_child *c, const char *method,
    struct json_object *params, bool progress, int limit_s, mcp_pending_fn *fn, void *arg);
/* A line of what it wrote, which may end it. */
void mcp_child_line(struct mcp_child *c, const char *line, size_t len);
/* fn is not called any more; the server is told. */
void mcp_pending_cancel(struct mcp_pending *p);

/* ---- ending.c: a server's end ---- */

struct mcp_ending;
LIST_HEAD(mcp_ending_list, mcp_ending);

/* Ends the leader of a process group, whose stdin is closed, and takes over its stdout (NULL: that
 * is closed as well). Blocks only without memory: then it is killed at once. name: of the server;
 * the one of that name that is due is started afterwards. */
void mcp_end_process(struct mcp_hub *hub, const char *name, pid_t pid, struct bufferevent *out);
bool
mcp_ends(const struct mcp_hub *hub, const char *name); /* a server of that name has not ended */
/* Runs the loop until all of them have ended. */
void mcp_end_wait(struct mcp_hub *hub);

/* ---- rpc.c: what a client asks ---- */

struct mcp_session;

struct mcp_part {
	struct mcp_call *call;
	struct mcp_child *child;     /* NULL: it was removed */
	struct mcp_pending *pending; /* NULL: done */
	struct json_object *items;   /* of a list; owned */
	unsigned pages;              /* of it, that came */
	char failure[200];
};

struct mcp_call {
	TAILQ_ENTRY(mcp_call) entry;
	struct mcp_session *session;
	struct json_object *id, *token; /* of the client; token of its progress, NULL: none */
	const struct mcp_method *method;
	struct evhttp_request *reply; /* NULL: the session's stream */
	struct mcp_part *parts;
	size_t n, left;
};
TAILQ_HEAD(mcp_call_list, mcp_call);

/* Borrowed. NULL: the message has no id, or one that is neither a string nor an integer; then it is
 * no request, as for the original. */
struct json_object *mcp_rpc_id(struct json_object *message);
/* A body as a message, which is the caller's; NULL: it is none. */
struct json_object *mcp_rpc_parse(const void *p, size_t len);
/* One message of a client. reply: where the answer to a request goes; NULL: the stream. True if
 * there will be an answer. */
bool
mcp_rpc_message(struct mcp_session *s, struct json_object *message, struct evhttp_request *reply);
void mcp_call_cancel(struct mcp_call *call); /* and free */
void mcp_call_progress(void *arg, struct json_object *params);
/* No part of a call refers to it any more. */
void mcp_rpc_child_gone(struct mcp_hub *hub, struct mcp_child *c);

/* ---- session.c and http.c: clients ---- */

struct mcp_session {
	TAILQ_ENTRY(mcp_session) entry;
	struct mcp_hub *hub;
	char id[33];
	bool streamable;               /* else it lives as long as its stream */
	bool initialized;              /* the client has said so */
	struct evhttp_request *stream; /* NULL: none is open */
	struct event *ping;
	struct mcp_call_list calls;
};
TAILQ_HEAD(mcp_session_list, mcp_session);

struct mcp_session *mcp_session_new(struct mcp_hub *hub, bool streamable);
void mcp_session_free(struct mcp_session *s); /* its calls are cancelled */
struct mcp_session *mcp_session_find(struct mcp_hub *hub, const char *id, bool streamable);
/* On the stream, if there is one. NULL, in these and in mcp_http_message(): there was no memory for
 * the message, which the log tells. */
void mcp_session_notify(struct mcp_session *s, struct json_object *message);
void mcp_hub_notify(struct mcp_hub *hub, const char *method, struct json_object *params);

/* event: NULL or a name. */
void mcp_http_event(struct evhttp_request *req, const char *event, const char *data);
void mcp_http_message(struct evhttp_request *req, struct json_object *message);
void mcp_http_end(struct evhttp_request *req); /* of a stream */
int mcp_http_open(struct mcp_hub *hub, int listener, struct hr_err *err);

/* ---- update.c: the list of servers ---- */

/* What POST /update_mcp_server asks, in frames (handrail-plugin(5)). */
int mcp_update_open(struct mcp_hub *hub, int listener, struct hr_err *err);
void mcp_update_changed(struct mcp_hub *hub); /* a server has started, or not, or has ended */
void mcp_update_done(struct mcp_hub *hub);

struct mcp_update;
LIST_HEAD(mcp_update_list, mcp_update);

struct mcp_hub {
	struct event_base *base;
	struct mcp_child_list children;
	struct mcp_ending_list ending;
	struct mcp_session_list sessions;
	struct evhttp *http;
	struct event *accepts; /* updates */
	struct mcp_update_list updating;
	bool mounted; /* there were servers once: the paths exist */
	int ping_s;   /* between two comments on a stream */
};

/* Text of a value on one line; the caller's. NULL: there is no memory for it. */
char *mcp_text(struct json_object *v);

#endif
