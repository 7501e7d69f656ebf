/* hr_modal: connects to the provider Modal: gRPC to its API (api.c) and to the router for a
 * sandbox's commands (task.c), or, with its older routes, the API for both. The
 * behaviour follows the recorded traffic of Modal's own clients (t/corpus/clouds). */
#ifndef HR_HOST_MODAL_MODAL_H
#define HR_HOST_MODAL_MODAL_H

#include "host/cloud/cloud.h"
#include "host/modal/grpc.h"
#include "host/modal/modal.pb-c.h"

#define HR_MODAL_POLL_S 50        /* seconds per long poll */
#define HR_MODAL_CHUNK (1u << 20) /* bytes per message of a file upload */

enum { HR_MODAL_CREATE_IF_MISSING = 1, HR_MODAL_ANONYMOUS = 4 };
enum { HR_MODAL_STDOUT = 1, HR_MODAL_STDERR = 2 };
enum { HR_MODAL_SUCCESS = 1 };

/* The provider's state in struct hr_cloud. */
struct hr_modal {
	struct hr_grpc api, router; /* router.url is NULL as long as it is unknown */
	char *app_id, *auth, *task;
};

static inline struct hr_modal *
hr_modal_of(const struct hr_cloud *c)
{
	return c->own;
}

/* ---- api.c ---- */

int hr_modal_open(struct hr_cloud *c, struct hr_err *err);
void hr_modal_done(struct hr_cloud *c);
/* Invokes an API method with a single answer, which hr_pb_done() frees. `after` is "V2" or "". With
 * `once` a call that may have been executed is not repeated. */
int hr_modal_ask(struct hr_cloud *c, const char *method, const char *after,
    const ProtobufCMessage *q, const ProtobufCMessageDescriptor *type, bool once, void *ret,
    struct hr_grpc_end *end, struct hr_err *err);
/* Makes a call that may be repeated. */
int hr_modal_call(struct hr_cloud *c, const char *method, const ProtobufCMessage *q,
    const ProtobufCMessageDescriptor *type, void *ret, struct hr_err *err);
/* Invokes a method whose newer route has the suffix "V2": c->old selects one, and is set when the
 * service lacks the newer route. */
int hr_modal_sandbox_call(struct hr_cloud *c, const char *method, const ProtobufCMessage *q,
    const ProtobufCMessageDescriptor *type, void *ret, struct hr_err *err);
/* Fetches, once, the extra token that the newer routes require. */
int hr_modal_authorize(struct hr_cloud *c, struct hr_err *err);
int hr_modal_app(struct hr_cloud *c, struct hr_err *err); /* Looks up hr_modal.app_id. */
/* Creates a secret of these variables; the caller frees *ret_id. */
int hr_modal_secret(struct hr_cloud *c, const char *const *env, char **ret_id, struct hr_err *err);
/* Looks up hr_modal.task, and with the newer routes its router. */
int hr_modal_task(struct hr_cloud *c, struct hr_err *err);
int hr_modal_route(struct hr_cloud *c, const char *url, const char *jwt, struct hr_err *err);

/* ---- life.c ---- */

int hr_modal_create(struct hr_cloud *c, bool *unsure, struct hr_err *err);
int hr_modal_look(struct hr_cloud *c, struct hr_err *err);
int hr_modal_list(
    struct hr_cloud *c, const char *run, hr_cloud_found_fn *fn, void *arg, struct hr_err *err);
int hr_modal_end(struct hr_cloud *c, const char *id, struct hr_err *err);
int hr_modal_publish(struct hr_cloud *c, int port, struct hr_err *err);

/* ---- image.c ---- */

/* Returns the id of an image "FROM name", building it if needed; the caller frees *ret_id. */
int hr_modal_image(struct hr_cloud *c, const char *name, char **ret_id, struct hr_err *err);

/* ---- task.c ---- */

/* A program to run in the sandbox. */
struct hr_modal_exec {
	const char *const *argv;
	const struct hr_cloud_command *q; /* directory, variables, output and timeout */
	const char *input;                /* standard input of input_len bytes; NULL: none */
	size_t input_len;
	bool leave; /* true: return after the start, while the program continues */
};
int hr_modal_run(struct hr_cloud *c, const struct hr_modal_exec *e, struct hr_cloud_end *ret,
    struct hr_err *err);

/* ---- lists for messages ---- */

/* Makes the entries "NAME=value" of env; hr_modal_texts_done() frees them. */
struct hr_modal_texts {
	HrPb__Text *all, **each;
	size_t n;
	char **names;
};
int hr_modal_texts(struct hr_modal_texts *t, const char *const *env, struct hr_err *err);
void hr_modal_texts_done(struct hr_modal_texts *t);

#endif
