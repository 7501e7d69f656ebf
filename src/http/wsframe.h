/* hr_wsframe: implements WebSocket frames (RFC 6455). Pure. */
#ifndef HR_HTTP_WSFRAME_H
#define HR_HTTP_WSFRAME_H

#include <stdbool.h>
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

#define HR_WS_CONTROL_MAX 125        /* maximum bytes of a close, ping or pong */
#define HR_WS_MESSAGE_MAX (4u << 20) /* maximum bytes of a message that is received */

/* Computes the server's answer to a client's key. `ret` has room for 64 bytes. */
void hr_ws_accept(const char *key, char *ret);

/* Appends one whole frame: final, masked with `mask`; NULL, for a server: not masked. */
void hr_wsframe_put(
    struct hr_buf *b, enum hr_ws_op op, const unsigned char mask[4], const void *p, size_t len);

/* Called for each message, its fragments joined, and each control frame; non-zero stops. */
typedef int hr_ws_message_fn(void *arg, enum hr_ws_op op, const char *p, size_t len);

struct hr_wsframes {
	struct hr_buf in;      /* input that is not yet a whole frame */
	struct hr_buf message; /* the fragments received so far */
	int op;                /* type of their message; 0: none */
	bool server;           /* the other side is a client, whose frames are masked */
	size_t most;           /* bytes of a message; at first HR_WS_MESSAGE_MAX, no larger */
};

void hr_wsframes_init(struct hr_wsframes *f);
void hr_wsframes_done(struct hr_wsframes *f);
/* Parses the next bytes. Returns 0; 1: fn stopped; -1: malformed, or a message is too long. */
int hr_wsframes_feed(struct hr_wsframes *f, const char *p, size_t len, hr_ws_message_fn *fn,
    void *arg, struct hr_err *err);

#endif
