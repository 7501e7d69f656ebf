/* hr_ws: opens a WebSocket to a server, over a connection of libcurl that may use TLS, proxies and
 * Unix sockets. Only hr_ws_open() waits: the caller polls hr_ws_fd() for hr_ws_events(). */
#ifndef HR_HTTP_WS_H
#define HR_HTTP_WS_H

#include "http/http.h"
#include "http/wsframe.h"

struct hr_ws;

/* The answer of a server that refused the WebSocket. */
struct hr_ws_refusal {
	enum hr_http_fault fault; /* NONE: the server answered */
	long status;              /* HTTP status; 0: none */
	struct hr_buf body;
};

/* Connects and agrees on one of `protocols` (a list with commas). Uses url (http or https),
 * unix_socket, headers, timeout_s, and the members for TLS and proxies of r. Returns NULL with *err
 * and *ret; call hr_ws_refusal_done() on *ret in any case. */
struct hr_ws *hr_ws_open(const struct hr_http_request *r, const char *protocols,
    struct hr_ws_refusal *ret, struct hr_err *err);
void hr_ws_refusal_done(struct hr_ws_refusal *r);
void hr_ws_free(struct hr_ws *w); /* Does nothing with NULL. */

/* Returns the agreed protocol, or "" if there is none. */
const char *hr_ws_protocol(const struct hr_ws *w);
int hr_ws_fd(const struct hr_ws *w);
short hr_ws_events(const struct hr_ws *w); /* Returns the events for poll(). */
/* Returns the bytes still to be sent; a caller that ignores a large number queues without limit. */
size_t hr_ws_backlog(const struct hr_ws *w);

/* Queues a frame and sends as much as possible now. */
int hr_ws_send(struct hr_ws *w, enum hr_ws_op op, const void *p, size_t len, struct hr_err *err);
int hr_ws_flush(struct hr_ws *w, struct hr_err *err);
/* Passes the messages of one read to fn; call it once after opening as well. Answers pings. Returns
 * 0; 1: fn stopped, or the server has closed; -1 with *err. */
int hr_ws_receive(struct hr_ws *w, hr_ws_message_fn *fn, void *arg, struct hr_err *err);

#endif
