/* hr_wsserve: a server of WebSockets in a plugin. nginx is its only client. All calls and callbacks
 * are in the loop's thread. */
#ifndef HR_HTTP_WSSERVE_H
#define HR_HTTP_WSSERVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/span.h"

struct hr_loop;
struct hr_wsserve;
struct hr_wsconn; /* a connection; valid until `left` returns */

struct hr_wsserve_calls {
	/* Gets a request, and answers it by one of the two calls below. One that asks for a
	 * WebSocket has the headers that this takes. */
	void (*asked)(void *arg, struct hr_wsconn *c);
	/* Gets a message of text, which is UTF-8; NULL: one of bytes. */
	void (*message)(void *arg, struct hr_wsconn *c, const char *p, size_t len);
	/* The client has taken all that was sent. */
	void (*drained)(void *arg, struct hr_wsconn *c);
	/* The connection has ended, after `asked`. */
	void (*left)(void *arg, struct hr_wsconn *c);
};

/* Serves the connections of a listening socket, which stays the caller's: at most `most` of them. A
 * further one takes the place of the first that is not trusted. A client that is slow with its
 * request is closed after some seconds. A trusted one gets a ping every ping_ms, and is closed if
 * it sends nothing until the next one: it may have vanished without a word. Serves until the
 * process ends. Returns NULL with *err set. */
struct hr_wsserve *hr_wsserve_open(struct hr_loop *loop, int listener, unsigned most,
    int64_t ping_ms, const struct hr_wsserve_calls *calls, void *arg, struct hr_err *err);

/* Closes all WebSockets with 1012, as far as the clients take it at once. The process must end. */
void hr_wsserve_leave(struct hr_wsserve *s);

/* Returns the target of the request, and the value of a header, "" if it is missing. Both are
 * borrowed until `asked` returns. */
const char *hr_wsconn_target(const struct hr_wsconn *c);
const char *hr_wsconn_header(const struct hr_wsconn *c, const char *name);
/* Accepts, or answers with a status such as "404 Not Found" and closes. */
void hr_wsconn_accept(struct hr_wsconn *c);
void hr_wsconn_refuse(struct hr_wsconn *c, const char *status, const char *json);
/* Closes with the code and reason after so many milliseconds, unless the client is trusted. */
void hr_wsconn_limit(struct hr_wsconn *c, int64_t ms, int code, const char *reason);
/* Lifts that limit, and the limit of 16 KiB for messages. */
void hr_wsconn_trust(struct hr_wsconn *c);
/* Sends a message of text, which is kept until the client has taken it. */
void hr_wsconn_send(struct hr_wsconn *c, const char *p, size_t len);
bool hr_wsconn_is_drained(const struct hr_wsconn *c);
/* Sends the code and the reason, and closes once they are taken or after some seconds. */
void hr_wsconn_close(struct hr_wsconn *c, int code, const char *reason);

/* Keeps and returns the caller's own data, NULL at first. */
void hr_wsconn_own(struct hr_wsconn *c, void *own);
void *hr_wsconn_own_of(const struct hr_wsconn *c);

#endif
