/* hr_connect: parses streams of frames of one byte of flags, four bytes of length, and a message:
 * JSON in the Connect protocol, protobuf in gRPC. Input may arrive in pieces of any size. */
#ifndef HR_HOST_CLOUD_CONNECT_H
#define HR_HOST_CLOUD_CONNECT_H

#include "base/buf.h"

#define HR_CONNECT_FRAME_MAX (32u << 20)
#define HR_CONNECT_END 2 /* flag of the last frame, which is {} or {"error": ...} */

/* Receives a whole frame's message; a non-zero result stops. */
typedef int hr_connect_fn(void *arg, unsigned flags, const char *p, size_t len);

struct hr_connect {
	hr_connect_fn *fn;
	void *arg;
	struct hr_buf part; /* a frame that is incomplete so far */
	bool ended;         /* the last frame has arrived: more data is an error */
};

void hr_connect_init(struct hr_connect *c, hr_connect_fn *fn, void *arg);
void hr_connect_done(struct hr_connect *c);
/* Parses input. Returns 0, 1 if fn has stopped, or -1 with *err set: the stream is invalid, a frame
 * is compressed or longer than HR_CONNECT_FRAME_MAX, or memory runs out. */
int hr_connect_feed(struct hr_connect *c, const char *p, size_t len, struct hr_err *err);

void hr_connect_put(struct hr_buf *b, unsigned flags, const char *p, size_t len);

#endif
