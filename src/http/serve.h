/* hr_serve: an HTTP server in a plugin, over libevent's: requests with whole bodies or with bodies
 * that still arrive, answers and streams. nginx is its only client. All calls and callbacks are in
 * the loop's thread. */
#ifndef HR_HTTP_SERVE_H
#define HR_HTTP_SERVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/span.h"

struct hr_loop;
struct hr_serve;
/* One request and its answer. It stays valid until hr_serve_answer() or hr_serve_end(), also after
 * its client has left; one of these two must be called for each. */
struct hr_serve_request;

typedef void hr_serve_fn(void *arg, struct hr_serve_request *q);
typedef void hr_serve_event_fn(void *arg);

/* Serves the connections of a listening socket, which stays the caller's and becomes non-blocking.
 * `fn` gets each request once its body is complete; a body above `body_max` bytes is refused
 * before. nginx sends requests of paths with "stream_body" (handrail-plugin(5)) by TRACE: `fn` gets
 * these before their bodies. Returns NULL with *err set. */
struct hr_serve *hr_serve_open(struct hr_loop *loop, int listener, size_t body_max, hr_serve_fn *fn,
    void *arg, struct hr_err *err);
/* Closes all connections, without callbacks. Unfinished requests must still be ended, before or
 * after. */
void hr_serve_close(struct hr_serve *s);

/* ---- the request ---- */

/* Returns "GET", "POST" and so on, borrowed, as are all results here. */
const char *hr_serve_method(const struct hr_serve_request *q);
/* Returns the path as it was sent, without the query. */
const char *hr_serve_path(const struct hr_serve_request *q);
/* Returns the query as it was sent; "": there is none. */
const char *hr_serve_query(const struct hr_serve_request *q);
/* Returns a header's value; NULL: the header is missing. */
const char *hr_serve_header(const struct hr_serve_request *q, const char *name);
struct hr_span hr_serve_body(const struct hr_serve_request *q);
/* Frees a whole body before the answer. */
void hr_serve_drop(struct hr_serve_request *q);

/* Takes the next bytes of a body that still arrives; they are valid until the next call. At most 64
 * KiB wait here, then the client waits. Returns 1 with *ret, empty if nothing has arrived; 0 at the
 * end; or -1 if the body is malformed or was cut. */
int hr_serve_take(struct hr_serve_request *q, struct hr_span *ret);
/* Returns true once the client of such a body has left. */
bool hr_serve_is_cut(const struct hr_serve_request *q);
/* Sets the callback of a request that is not answered at once: there may be something to take, or
 * the client has left. */
void hr_serve_read(struct hr_serve_request *q, hr_serve_event_fn *arrived, void *arg);

/* ---- the answer ---- */

/* Sets a header, before the answer starts. */
void hr_serve_set(struct hr_serve_request *q, const char *name, const char *value);
/* Sends a whole answer and frees q. type NULL: no Content-Type. */
void hr_serve_answer(
    struct hr_serve_request *q, int status, const char *type, const void *p, size_t len);

/* Starts a stream with status 200; type NULL: no Content-Type. Before that, libevent does not
 * notice that a client leaves. Its head leaves with the next data or the end. The request's headers
 * and a whole body are freed: a stream may stay for days. */
void hr_serve_start(struct hr_serve_request *q, const char *type);
/* Sends data of a stream; drops the data if the client has left. Nothing bounds the memory but the
 * caller, by hr_serve_pending(). */
void hr_serve_send(struct hr_serve_request *q, const void *p, size_t len);
/* Returns the number of bytes that the client has not taken yet. */
size_t hr_serve_pending(const struct hr_serve_request *q);
/* Ends a stream and frees q. `whole`: false cuts the connection, so that the client sees a broken
 * stream. */
void hr_serve_end(struct hr_serve_request *q, bool whole);

/* Sets the callbacks of a request that is not answered at once: `drained` each time when the client
 * has taken everything sent so far, `left` once when it has closed the connection. Either may be
 * NULL. */
void hr_serve_watch(
    struct hr_serve_request *q, hr_serve_event_fn *drained, hr_serve_event_fn *left, void *arg);

#endif
