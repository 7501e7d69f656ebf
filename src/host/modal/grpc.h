/* hr_grpc: calls a gRPC service over HTTP/2, with a single answer or a stream. Calls block; one
 * thread at a time. A call that may have been executed is repeated only if the call allows it. */
#ifndef HR_HOST_MODAL_GRPC_H
#define HR_HOST_MODAL_GRPC_H

#include <protobuf-c/protobuf-c.h>

#include "base/strv.h"
#include "host/handrail.h"

/* the status of a failed call, numbered as in gRPC */
enum {
	HR_GRPC_LOST = -1, /* no status arrived */
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
	char *url;
	struct hr_strv headers; /* headers of each call: "name: value" */
	struct hr_strv secrets; /* strings that errors must not show */
	struct hr_http *http;
};

/* Receives a message of a stream; a non-zero result stops without an error. */
typedef int hr_grpc_fn(void *arg, const ProtobufCMessage *m, struct hr_err *err);

struct hr_grpc_call {
	const char *path;          /* path of the method, "/package.Service/Method" */
	const ProtobufCMessage *q; /* the request */
	const ProtobufCMessageDescriptor *type;
	hr_grpc_fn *each; /* handles a stream's messages; returns -1 with *err on an error */
	void *arg;
	unsigned deadline_s; /* 0: 60 s, and no limit for streams */
	int watch_fd;        /* when it is readable, the call is aborted; 0: none */
	/* The call is not repeated once it may have been executed, except with a key when the
	 * service answers that it is unavailable. */
	bool once;
	bool key; /* send x-idempotency-key, the same for all attempts */
};

struct hr_grpc_end {
	int status;        /* status of the call: a value HR_GRPC_... */
	bool unsure;       /* after an error: whether the call may have been executed */
	unsigned messages; /* number of received messages */
};

/* Initialises g. The URL must be https or on this machine. Returns 0, or -1 with *err set. */
int hr_grpc_init(struct hr_grpc *g, const char *url, struct hr_err *err);
void hr_grpc_done(struct hr_grpc *g); /* Accepts a zeroed or initialised struct. */

/* Makes a call. Returns 0 for status 0, with the answer in *ret (ret NULL for streams), which the
 * caller frees by hr_pb_done(). Returns -1 with *err: NOT_FOUND, PERMISSION, UNAVAILABLE, OSTIMEOUT
 * or RUNTIME by status, HTTP_PROTOCOL for an invalid answer. *end is set in both cases. */
int hr_grpc_do(struct hr_grpc *g, const struct hr_grpc_call *c, void *ret, struct hr_grpc_end *end,
    struct hr_err *err);

#endif
