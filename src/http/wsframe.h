/* hr_wsframe: the frames of a WebSocket (RFC 6455) as a client reads and writes them. Pure. */
#ifndef HR_HTTP_WSFRAME_H
#define HR_HTTP_WSFRAME_H

#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

enum hr_ws_op {
	HR_WS_TEXT = 1,
	HR_WS_BINARY = 2,
	HR_WS_CLOSE = 8,
	HR_WS_PING = 9,
	HR_WS_PONG = 10,
};

#define HR_WS_CONTROL_MAX 125        /* bytes of a close, ping or pong */
#define HR_WS_MESSAGE_MAX (4u << 20) /* of a message that a server may send */

/* Appends one whole frame: final, masked with `mask`. */
void hr_wsframe_put(
    struct hr_buf *b, enum hr_ws_op op, const unsigned char mask[4], const void *p, size_t len);

/* Called for each message, its fragments joined, and each control frame; non-zero stops. */
typedef int hr_ws_message_fn(void *arg, enum hr_ws_op op, const char *p, size_t len);

struct hr_wsframes {
	struct hr_buf in;      /* not yet a whole frame */
	struct hr_buf message; /* the fragments so far */
	int op;                /* of the message that they are of; 0: there is none */
};

void hr_wsframes_init(struct hr_wsframes *f);
void hr_wsframes_done(struct hr_wsframes *f);
/* 0; 1: fn stopped; -1: this is no WebSocket, or a message is too long. */
int hr_wsframes_feed(struct hr_wsframes *f, const char *p, size_t len, hr_ws_message_fn *fn,
    void *arg, struct hr_err *err);

#endif
