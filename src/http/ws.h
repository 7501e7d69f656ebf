/* hr_ws: a WebSocket to a server, over what libcurl connects to: TLS, proxies, Unix sockets.
 * Nothing here waits but hr_ws_open(): the caller polls hr_ws_fd() for what hr_ws_events() says. */
#ifndef HR_HTTP_WS_H
#define HR_HTTP_WS_H

#include "http/http.h"
#include "http/wsframe.h"

struct hr_ws;

/* What a server said that did not want to talk so. */
struct hr_ws_refusal {
	enum hr_http_fault fault; /* NONE: it did answer */
	long status;              /* of HTTP; 0: there was none */
	struct hr_buf body;
};

/* Connects and agrees on one of `protocols` (a list with commas). Of r are used url (http or
 * https), unix_socket, headers, timeout_s, and what is for TLS and proxies. *ret is to be freed by
 * hr_ws_refusal_done() in any case. NULL with *err: see *ret. */
struct hr_ws *hr_ws_open(const struct hr_http_request *r, const char *protocols,
    struct hr_ws_refusal *ret, struct hr_err *err);
void hr_ws_refusal_done(struct hr_ws_refusal *r);
void hr_ws_free(struct hr_ws *w); /* NULL: nothing */

const char *hr_ws_protocol(const struct hr_ws *w); /* what was agreed on; "": nothing */
int hr_ws_fd(const struct hr_ws *w);
short hr_ws_events(const struct hr_ws *w); /* for poll */
/* Bytes that are to be sent yet: who gives more when there are many waits for ever. */
size_t hr_ws_backlog(const struct hr_ws *w);

/* Queues a frame and sends what can be sent now. */
int hr_ws_send(struct hr_ws *w, enum hr_ws_op op, const void *p, size_t len, struct hr_err *err);
int hr_ws_flush(struct hr_ws *w, struct hr_err *err);
/* The messages of one read; to be called once after opening as well. Pings are answered here. 0; 1:
 * fn stopped, or the server has closed; -1 *err. */
int hr_ws_receive(struct hr_ws *w, hr_ws_message_fn *fn, void *arg, struct hr_err *err);

/* For its test: what the server has to answer to a key. ret has room for 64. */
void hr_ws_accept(const char *key, char *ret);

#endif
