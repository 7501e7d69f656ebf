/* The provider Modal: gRPC to its API (api.c), and to the router of a sandbox's commands (task.c),
 * or, with its older routes, the API for both (oldtask.c). What is said here follows the recorded
 * traffic of its own clients (t/corpus/clouds). */
#ifndef HR_HOST_MODAL_MODAL_H
#define HR_HOST_MODAL_MODAL_H

#include "host/cloud/cloud.h"
#include "host/modal/grpc.h"
#include "host/modal/modal.pb-c.h"

#define HR_MODAL_WHO "Modal"
#define HR_MODAL_POLL_S 50        /* of one long poll */
#define HR_MODAL_CHUNK (1u << 20) /* of a file that is sent */

enum { HR_MODAL_CREATE_IF_MISSING = 1, HR_MODAL_ANONYMOUS = 4 };
enum { HR_MODAL_STDOUT = 1, HR_MODAL_STDERR = 2 };
enum { HR_MODAL_SUCCESS = 1 };

/* What a sandbox's struct hr_cloud has as its own. */
struct hr_modal {
	struct hr_grpc api, router; /* router.url NULL: not asked for yet */
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
/* A call of the API with one answer, which hr_pb_done() frees; after: "V2" or ""; once: it is not
 * sent again where it may have been carried out. */
int hr_modal_ask(struct hr_cloud *c, const char *method, const char *after,
    const ProtobufCMessage *q, const ProtobufCMessageDescriptor *type, bool once, void *ret,
    struct hr_grpc_end *end, struct hr_err *err);
/* One that may be repeated. */
int hr_modal_call(struct hr_cloud *c, const char *method, const ProtobufCMessage *q,
    const ProtobufCMessageDescriptor *type, void *ret, struct hr_err *err);
/* One whose newer route has "V2" behind its name: c->old says which one, and is found out. */
int hr_modal_sandbox_call(struct hr_cloud *c, const char *method, const ProtobufCMessage *q,
    const ProtobufCMessageDescriptor *type, void *ret, struct hr_err *err);
/* The newer routes want a token of their own, which is asked for once. */
int hr_modal_authorize(struct hr_cloud *c, struct hr_err *err);
int hr_modal_app(struct hr_cloud *c, struct hr_err *err); /* hr_modal.app_id is known */
/* A secret of these variables: its id is the caller's. */
int hr_modal_secret(struct hr_cloud *c, const char *const *env, char **ret_id, struct hr_err *err);
/* hr_modal.task is known; with the newer routes its router as well. */
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

/* The id of an image "FROM name", which is built if it has to be; the caller's. */
int hr_modal_image(struct hr_cloud *c, const char *name, char **ret_id, struct hr_err *err);

/* ---- task.c, oldtask.c ---- */

/* A program in the sandbox. */
struct hr_modal_exec {
	const char *const *argv;
	const struct hr_cloud_command *q; /* its directory, variables, output and time */
	const char *input;                /* what it reads, with input_len; NULL: nothing */
	size_t input_len;
	bool leave; /* return when it has begun, and it goes on */
};
int hr_modal_run(struct hr_cloud *c, const struct hr_modal_exec *e, struct hr_cloud_end *ret,
    struct hr_err *err);
int hr_modal_run_old(struct hr_cloud *c, const struct hr_modal_exec *e, int timer,
    struct hr_cloud_end *ret, struct hr_err *err);

/* ---- lists for messages ---- */

/* "NAME=value" of env as entries; hr_modal_texts_done() them. */
struct hr_modal_texts {
	HrPb__Text *all, **each;
	size_t n;
	char **names;
};
int hr_modal_texts(struct hr_modal_texts *t, const char *const *env, struct hr_err *err);
void hr_modal_texts_done(struct hr_modal_texts *t);

#endif
