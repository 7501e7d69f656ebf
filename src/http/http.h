/* hr_http: requests to TCP and Unix sockets, with bodies that may be streams: of this machine by
 * http/near, others by libcurl, of which this folder is the only user. Waiting is by event: for the
 * connection, and for one more descriptor of the caller's, such as a child's end. Redirects are not
 * followed. */
#ifndef HR_HTTP_HTTP_H
#define HR_HTTP_HTTP_H

#include "base/text/percent.h"
#include "http/request.h"

struct hr_http; /* connections that are kept for the next request; one user at a time */

struct hr_http *hr_http_new(struct hr_err *err);
void hr_http_free(struct hr_http *h); /* NULL: nothing */

const char *hr_http_fault_name(enum hr_http_fault f); /* "ConnectError" and so on */

/* 0: an answer came, whatever its status; -1: *err, and ret->fault. hr_http_answer_done() in both
 * cases. */
int hr_http_do(struct hr_http *h, const struct hr_http_request *r, struct hr_http_answer *ret,
    struct hr_err *err);
void hr_http_answer_done(struct hr_http_answer *a);

/* Appends s with everything but letters, digits and -_.~ as %XX. */
static inline void
hr_http_escape(struct hr_buf *b, const char *s)
{
	hr_percent_encode(b, s, "-_.~");
}

/* Seconds of a Retry-After header, as a number or a date; -1: it has none. */
long hr_http_seconds(const char *retry_after);

#endif
