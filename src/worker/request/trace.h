/* hr_trace: handles the trace context of a request (W3C Trace Context, version 00). */
#ifndef HR_WORKER_REQUEST_TRACE_H
#define HR_WORKER_REQUEST_TRACE_H

#define HR_TRACE_LEN 55 /* length of "00-<32 hex>-<16 hex>-<2 hex>" */

/* Makes the trace context for the answer and the log: the trace of `parent` (the request's header)
 * with a span of handrail's, or a new trace if parent is "" or invalid. Both are taken from nginx's
 * request id, 32 hexadecimal digits; without an id ret is "". */
void hr_trace_next(const char *parent, const char *request_id, char ret[HR_TRACE_LEN + 1]);

#endif
