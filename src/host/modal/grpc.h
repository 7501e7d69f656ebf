/* hr_grpc: calls of a gRPC service over HTTP/2, with one answer or a stream of them. It blocks; one
 * thread at a time. What may have been carried out is sent again only where the call says so. */
#ifndef HR_HOST_MODAL_GRPC_H
#define HR_HOST_MODAL_GRPC_H

#include <protobuf-c/protobuf-c.h>

#include "base/strv.h"
#include "host/handrail.h"

/* Of a call that failed, as gRPC numbers them. */
enum {
	HR_GRPC_LOST = -1, /* its end was never told */
	HR_GRPC_OK = 0,
	HR_GRPC_CANCELLED = 1,
	HR_GRPC_UNKNOWN = 2,
	HR_GRPC_DEADLINE = 4,
	HR_GRPC_NOT_FOUND = 5,
	HR_GRPC_EXISTS = 6,
	HR_GRPC_DENIED = 7,
	HR_GRPC_EXHAUSTED = 8,
	HR_GRPC_UNIMPLEMENTED = 12,
	HR_GRPC_INTERNAL = 13,
	HR_GRPC_UNAVAILABLE = 14,
	HR_GRPC_UNAUTHENTICATED = 16,
};

struct hr_grpc {
	const char *who; /* "Modal", in messages */
	char *url;
	struct hr_strv headers; /* of each call: "name: value" */
	struct hr_strv secrets; /* that are in no error */
	struct hr_http *http;
};

/* A message of a stream; non-zero: enough, which is no error. */
typedef int hr_grpc_fn(void *arg, const ProtobufCMessage *m, struct hr_err *err);

struct hr_grpc_call {
	const char *path;          /* "/package.Service/Method" */
	const ProtobufCMessage *q; /* what is sent */
	const ProtobufCMessageDescriptor *type;
	hr_grpc_fn *each; /* for a stream: -1 with *err: an error */
	void *arg;
	unsigned deadline_s; /* 0: 60, of a stream none */
	int watch_fd;        /* readable: give up; 0: none */
	/* It is not sent again once it may have been carried out; with a key it is, where the
	 * service answers that it is not available. */
	bool once;
	bool key; /* x-idempotency-key, the same of all attempts */
};

struct hr_grpc_end {
	int status;        /* HR_GRPC_... */
	bool unsure;       /* of an error: it may have been carried out all the same */
	unsigned messages; /* that came */
};

/* The URL is of https, or of this machine. */
int hr_grpc_init(struct hr_grpc *g, const char *who, const char *url, struct hr_err *err);
void hr_grpc_done(struct hr_grpc *g); /* of one that is zeroed or initialised */

/* 0: status 0, and *ret (NULL for streams) the answer, hr_pb_done() it. -1: *err: NOT_FOUND,
 * PERMISSION, UNAVAILABLE, OSTIMEOUT, RUNTIME by the status, HTTP_PROTOCOL for an answer that is
 * none. end is told in both cases. */
int hr_grpc_do(struct hr_grpc *g, const struct hr_grpc_call *c, void *ret, struct hr_grpc_end *end,
    struct hr_err *err);

#endif
