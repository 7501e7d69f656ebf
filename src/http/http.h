/* hr_http: performs requests to TCP and Unix sockets, with bodies that may be streams. http/near
 * serves those of this machine, libcurl the others; only this folder uses libcurl. A call waits for
 * events of the connection and of one more descriptor of the caller's, such as a child's end.
 * Redirects are not followed. */
#ifndef HR_HTTP_HTTP_H
#define HR_HTTP_HTTP_H

#include "base/text/percent.h"
#include "http/request.h"

struct hr_http; /* connections kept for later requests; not thread safe */

struct hr_http *hr_http_new(struct hr_err *err);
void hr_http_free(struct hr_http *h); /* Does nothing with NULL. */

const char *hr_http_fault_name(enum hr_http_fault f); /* Returns "ConnectError" and so on. */

/* Performs a request. Returns 0 with an answer of any status, or -1 with *err and ret->fault. Call
 * hr_http_answer_done() in both cases. */
int hr_http_do(struct hr_http *h, const struct hr_http_request *r, struct hr_http_answer *ret,
    struct hr_err *err);
void hr_http_answer_done(struct hr_http_answer *a);

/* Appends s, with all bytes except letters, digits and -_.~ as %XX. */
static inline void
hr_http_escape(struct hr_buf *b, const char *s)
{
	hr_percent_encode(b, s, "-_.~");
}

/* Returns the seconds of a Retry-After header, a number or a date; -1: there is none. */
long hr_http_seconds(const char *retry_after);

#endif
