/* hr_mcp: declares the parts of the MCP proxy. It starts servers that speak on stdin and stdout,
 * and offers their tools to clients over HTTP as those of one server. A request goes from the
 * client through http.c, session.c, rpc.c and child.c to the process. There is one thread with one
 * loop. Nothing blocks: each reply is a callback. */
#ifndef HR_PLUGINS_MCP_HUB_H
#define HR_PLUGINS_MCP_HUB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct bufferevent;
struct hr_loop;
struct hr_serve;
struct hr_serve_request;
struct hr_watch;
struct json_object;

struct mcp_hub;

/* bytes that wait for a client before it gets no more */
#define MCP_UNREAD_MAX (64u << 20)

/* ---- child.c: one configured server ---- */

enum mcp_child_state {
	MCP_CHILD_OFF,      /* the server starts with its first use */
	MCP_CHILD_STARTING, /* "initialize" was sent */
	MCP_CHILD_READY,
};

struct mcp_pending;
/* Takes a reply: result, error (JSON-RPC), or failure (message); the other two are NULL. All are
 * borrowed. */
typedef void mcp_pending_fn(
    void *arg, struct json_object *result, struct json_object *error, const char *failure);
TAILQ_HEAD(mcp_pending_list, mcp_pending);

struct mcp_child {
	TAILQ_ENTRY(mcp_child) entry;
	struct mcp_hub *hub;
	/* object with name, command, args and env, checked and normalised */
	struct json_object *config;
	const char *name; /* points into `config` */
	enum mcp_child_state state;
	bool due;  /* true: the server starts once its predecessor has ended */
	pid_t pid; /* leader of the server's process group; 0: none */
	struct bufferevent *in, *out;
	struct hr_buf line; /* the line that arrives */
	bool ends; /* true: the output has ended, and `timer` limits the wait for the exit */
	struct hr_watch *ended; /* watches `pidfd`; NULL: none */
	int pidfd;              /* pidfd of the ending process */
	struct mcp_pending_list pending;
	size_t requests, unsent; /* number of pending requests; bytes of those that wait */
	size_t answered;         /* bytes of answers since it had last read all */
	struct hr_watch *timer;
	int64_t next_id, failed_ms;
	struct json_object *tools; /* names of the last list of tools, as keys; NULL: unknown */
	char reason[200];          /* why the server is off; "": there is no reason */
	bool refused;              /* the server ran, and its own error is the reason */
};
TAILQ_HEAD(mcp_child_list, mcp_child);

/* Takes ownership of config. Returns NULL without memory. */
struct mcp_child *mcp_child_new(struct mcp_hub *hub, struct json_object *config);
/* Starts to end the server's process; pending requests fail. */
void mcp_child_free(struct mcp_child *c);
void mcp_child_start(struct mcp_child *c);

/* Sends a request and starts the server if necessary. fn is called once, never from within, with a
 * failure if too much waits for the server already; params may be NULL. limit_s 0: no limit. With
 * `progress` the server's reports go to mcp_call_progress() with fn's arg. Returns NULL without
 * memory, and fn is not called. */
struct mcp_pending *mcp_child_request(struct mcp_child *c, const char *method,
    struct json_object *params, bool progress, int limit_s, mcp_pending_fn *fn, void *arg);
/* Handles a line of the server's output, which may end the server. */
void mcp_child_line(struct mcp_child *c, const char *line, size_t len);
/* Cancels a request: fn is not called any more, and the server is notified. */
void mcp_pending_cancel(struct mcp_pending *p);

/* ---- ending.c: ending a server ---- */

LIST_HEAD(mcp_ending_list, mcp_ending);

/* Ends the leader of a process group, whose stdin is closed, and takes its stdout (NULL: closed as
 * well). Out of memory it kills at once and blocks. `name` is the server's; a due server of that
 * name is started afterwards. */
void mcp_end_process(struct mcp_hub *hub, const char *name, pid_t pid, struct bufferevent *out);
/* Returns true if a server of that name is still ending. */
bool mcp_ends(const struct mcp_hub *hub, const char *name);
/* Runs the loop until all of them have ended. */
void mcp_end_wait(struct mcp_hub *hub);

/* ---- rpc.c: requests of clients ---- */

struct mcp_session;

struct mcp_part {
	struct mcp_call *call;
	struct mcp_child *child;     /* NULL: the server was removed */
	struct mcp_pending *pending; /* NULL: the request is done */
	struct json_object *items;   /* items of a list; owned */
	unsigned pages;              /* number of pages of the list so far */
	char failure[200];
};

struct mcp_call {
	TAILQ_ENTRY(mcp_call) entry;
	struct mcp_session *session;
	struct json_object *id, *token; /* id: the client's; token: of its progress, or NULL */
	const struct mcp_method *method;
	struct hr_serve_request *reply; /* NULL: use the session's stream */
	struct mcp_part *parts;
	size_t n, left;
};
TAILQ_HEAD(mcp_call_list, mcp_call);

/* Returns the id, borrowed. Returns NULL if there is none, or it is neither a string nor an
 * integer; then the message is not a request, as in the original. */
struct json_object *mcp_rpc_id(struct json_object *message);
/* Parses a body; the caller owns the message. Returns NULL for an invalid one. */
struct json_object *mcp_rpc_parse(const void *p, size_t len);
/* Handles a client's message. `reply` is the request that gets the answer; NULL: the stream.
 * Returns true if there will be an answer. */
bool
mcp_rpc_message(struct mcp_session *s, struct json_object *message, struct hr_serve_request *reply);
void mcp_call_cancel(struct mcp_call *call); /* Cancels the call and frees it. */
void mcp_call_progress(void *arg, struct json_object *params);
/* Removes all references to c from calls. */
void mcp_rpc_child_gone(struct mcp_hub *hub, struct mcp_child *c);

/* ---- session.c and http.c: clients ---- */

struct mcp_session {
	TAILQ_ENTRY(mcp_session) entry;
	struct mcp_hub *hub;
	char id[33];
	bool streamable;                 /* otherwise the session ends with its stream */
	bool initialized;                /* the client has confirmed the initialisation */
	bool slow;                       /* the loop cuts the stream, which is not read */
	struct hr_serve_request *stream; /* NULL: the stream is not open */
	struct hr_watch *ping;
	struct mcp_call_list calls;
};
TAILQ_HEAD(mcp_session_list, mcp_session);

struct mcp_session *mcp_session_new(struct mcp_hub *hub, bool streamable);
void mcp_session_free(struct mcp_session *s); /* Frees the session and cancels its calls. */
struct mcp_session *mcp_session_find(struct mcp_hub *hub, const char *id, bool streamable);
/* Sends on the stream, if there is one. A client that has not read MCP_UNREAD_MAX bytes loses its
 * stream instead. message NULL, here and in mcp_http_message(), means that memory was short, which
 * is logged. */
void mcp_session_notify(struct mcp_session *s, struct json_object *message);
void mcp_hub_notify(struct mcp_hub *hub, const char *method, struct json_object *params);

/* Sends an event; `event` is its name, or NULL. */
void mcp_http_event(struct hr_serve_request *q, const char *event, const char *data);
void mcp_http_message(struct hr_serve_request *q, struct json_object *message);
int mcp_http_open(struct mcp_hub *hub, int listener, struct hr_err *err);

/* ---- update.c: the list of servers ---- */

/* Serves POST /update_mcp_server, in frames (handrail-plugin(5)). */
int mcp_update_open(struct mcp_hub *hub, int listener, struct hr_err *err);
/* Called when a server has started, failed or ended. */
void mcp_update_changed(struct mcp_hub *hub);
void mcp_update_done(struct mcp_hub *hub);

LIST_HEAD(mcp_update_list, mcp_update);

struct mcp_hub {
	struct hr_loop *loop;
	struct mcp_child_list children;
	struct mcp_ending_list ending;
	struct mcp_session_list sessions;
	struct hr_serve *http;
	int listener; /* the socket for updates */
	struct hr_watch *accepts;
	struct mcp_update_list updating;
	bool mounted; /* there have been servers, so the paths exist */
	bool closes;  /* the end of a server stops the loop */
	int ping_s;   /* seconds between two comments on a stream */
};

/* Returns a value's text on one line, owned by the caller; NULL without memory. */
char *mcp_text(struct json_object *v);

#endif
