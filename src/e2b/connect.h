/* hr_connect: parses streams of frames of one byte of flags, four bytes of length, and a message:
 * JSON in the Connect protocol, protobuf in gRPC. Input may arrive in pieces of any size. */
#ifndef HR_E2B_CONNECT_H
#define HR_E2B_CONNECT_H

#include "base/buf.h"
#include "base/span.h"

#define HR_CONNECT_FRAME_MAX (32u << 20)
#define HR_CONNECT_HEAD 5
#define HR_CONNECT_COMPRESSED 1
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

/* ---- errors of a server ---- */

enum hr_connect_code {
	HR_CONNECT_OK,
	HR_CONNECT_INVALID_ARGUMENT,
	HR_CONNECT_UNAUTHENTICATED,
	HR_CONNECT_PERMISSION_DENIED,
	HR_CONNECT_NOT_FOUND,
	HR_CONNECT_FAILED_PRECONDITION,
	HR_CONNECT_ALREADY_EXISTS,
	HR_CONNECT_UNIMPLEMENTED,
	HR_CONNECT_INTERNAL,
	HR_CONNECT_UNKNOWN,
	HR_CONNECT_UNAVAILABLE,
	HR_CONNECT_RESOURCE_EXHAUSTED,
	HR_CONNECT_DEADLINE_EXCEEDED,
};

struct hr_connect_error {
	enum hr_connect_code code;
	char text[2048];
};

/* Fills *e and returns -1. A message that does not fit is cut. */
int hr_connect_fail(struct hr_connect_error *e, enum hr_connect_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns true if a whole frame is at the front. */
bool hr_connect_has(struct hr_span rest);
/* Takes the next frame off the front of a whole body. `packed`: frames may be compressed. Returns
 * 0, or -1 with *e. */
int hr_connect_take(struct hr_span *rest, bool packed, unsigned *flags, struct hr_span *data,
    struct hr_connect_error *e);
/* Returns the HTTP status of a unary answer. */
int hr_connect_status(enum hr_connect_code code);
/* Appends {"code":...,"message":...}, the body of a unary error. */
void hr_connect_put_error(struct hr_buf *b, const struct hr_connect_error *e);
/* Appends the last frame of a stream: {} without an error (e NULL), else {"error":...}. */
void hr_connect_put_end(struct hr_buf *b, const struct hr_connect_error *e);

#endif
