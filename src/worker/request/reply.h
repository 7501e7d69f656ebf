/* hr_reply: between FastCGI's parameters and streams and our request and answer. */
#ifndef HR_WORKER_REQUEST_REPLY_H
#define HR_WORKER_REQUEST_REPLY_H

#include <fcgiapp.h>
#include <stdbool.h>

#include "worker/request/request.h"

/* *ret borrows from fcgi until the request is finished. */
void hr_reply_request(FCGX_Request *fcgi, struct hr_request *ret);

/* Reads what is left of the request's body: a connection that is closed with unread bytes is reset,
 * and the answer with it. */
void hr_reply_drain(FCGX_Request *fcgi);

/* The head of a stream that somebody else goes on with, and the connection for that, the caller's;
 * -1: there is none any more. What fcgi has of it is given back. */
int hr_reply_hold(FCGX_Request *fcgi, const struct hr_answer *a);

/* Writes the answer; the body was read. A peer that went away is no error: there is nobody to tell;
 * *ret_sent: all of it is in the peer's hands. false: the body of the answer could not be finished,
 * and the connection is closed already; what went wrong is in the log. */
bool hr_reply_send(FCGX_Request *fcgi, const struct hr_answer *a, bool *ret_sent);

#endif
