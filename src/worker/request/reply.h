/* hr_reply: converts FastCGI's parameters and streams to hr_request, and hr_answer back. */
#ifndef HR_WORKER_REQUEST_REPLY_H
#define HR_WORKER_REQUEST_REPLY_H

#include <fcgiapp.h>
#include <stdbool.h>

#include "worker/request/request.h"

/* Fills *ret, which borrows from fcgi until the request is finished. */
void hr_reply_request(FCGX_Request *fcgi, struct hr_request *ret);

/* Reads the rest of the request's body: closing a connection with unread bytes resets it and loses
 * the answer. */
void hr_reply_drain(FCGX_Request *fcgi);

/* Sends the head of a stream that the caller continues, and frees fcgi's part. Returns the
 * connection, which the caller owns, or -1 if it is lost. */
int hr_reply_hold(FCGX_Request *fcgi, const struct hr_answer *a);

/* Writes the answer; the body must have been read. A peer that has left is no error. *ret_sent is
 * set if the peer has received all of it. Returns false if the body could not be finished: the
 * reason is logged and the connection closed. */
bool hr_reply_send(FCGX_Request *fcgi, const struct hr_answer *a, bool *ret_sent);

#endif
