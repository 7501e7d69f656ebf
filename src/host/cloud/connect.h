/* hr_connect: streams of frames of one byte of flags, four of length, and a message: JSON in the
 * Connect protocol, protobuf in gRPC. Whatever is foreign here comes in pieces cut anywhere. */
#ifndef HR_HOST_CLOUD_CONNECT_H
#define HR_HOST_CLOUD_CONNECT_H

#include "base/buf.h"

#define HR_CONNECT_FRAME_MAX (32u << 20)
#define HR_CONNECT_END 2 /* flag: the last one, {} or {"error": ...} */

/* A whole frame's JSON; non-zero: enough. */
typedef int hr_connect_fn(void *arg, unsigned flags, const char *p, size_t len);

struct hr_connect {
	hr_connect_fn *fn;
	void *arg;
	struct hr_buf part; /* of a frame that is not whole */
	bool ended;         /* the last frame came: what follows is an error */
};

void hr_connect_init(struct hr_connect *c, hr_connect_fn *fn, void *arg);
void hr_connect_done(struct hr_connect *c);
/* 0; 1: fn has enough; -1: this is no stream of frames (or one of them is compressed or longer than
 * HR_CONNECT_FRAME_MAX), or there is no memory. */
int hr_connect_feed(struct hr_connect *c, const char *p, size_t len, struct hr_err *err);

void hr_connect_put(struct hr_buf *b, unsigned flags, const char *p, size_t len);

#endif
