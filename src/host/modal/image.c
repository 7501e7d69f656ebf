/* Handles images at Modal: finds or builds the image of a sandbox. */
#include "config.h"

#include "host/modal/modal.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "host/modal/pb.h"

#define POLLS_MAX 60 /* number of polls of 50 s: a build may take long */

/* Returns 1 for success, 0 while the build runs, or -1 with *err set. */
static int
verdict(const char *what, const HrPb__Result *r, struct hr_err *err)
{
	if (r == NULL || !r->has_status || r->status == 0)
		return 0;
	if (r->status == HR_MODAL_SUCCESS)
		return 1;
	return hr_err_set(err, HR_E_RUNTIME, HR_MODAL_WHO ": %s failed (status %d): %.300s", what,
	    r->status, r->exception != NULL ? r->exception : "no reason was given");
}

/* Fetches the builder version, which the account's environment sets for each image. */
static int
builder_version(struct hr_cloud *c, char **ret, struct hr_err *err)
{
	const HrPb__Empty q = HR_PB__EMPTY__INIT;
	HR_CLEAN(hr_pb_done) HrPb__Environment *a = NULL;
	const char *text = NULL;

	if (hr_modal_call(c, "EnvironmentGetOrCreate", &q.base, &hr_pb__environment__descriptor, &a,
		err) != 0)
		return -1;
	if (a->metadata != NULL && a->metadata->settings != NULL)
		text = a->metadata->settings->image_builder_version;
	if (hr_pb_text(
		"the answer of EnvironmentGetOrCreate", "image_builder_version", text, err) != 0)
		return -1;
	return hr_text_set(ret, text, err);
}

struct build {
	struct hr_cloud *c;
	char *entry;  /* id of the last log entry */
	int finished; /* 1: the build has succeeded */
};

static int
on_build(void *arg, const ProtobufCMessage *m, struct hr_err *err)
{
	struct build *b = arg;
	size_t i;
	HrPb__ImageJoinAnswer a;

	memcpy(&a, m, sizeof(a));
	for (i = 0; i < a.n_task_logs; i++)
		if (a.task_logs[i]->data != NULL && b->c->h->log != NULL)
			b->c->h->log(b->c->h->arg, a.task_logs[i]->data);
	if (a.entry_id != NULL && hr_text_set(&b->entry, a.entry_id, err) != 0)
		return -1;
	b->finished = verdict("building the image", a.result, err);
	return b->finished;
}

static int
wait_built(struct hr_cloud *c, const char *id, struct hr_err *err)
{
	int i;

	HrPb__ImageJoinRequest q = HR_PB__IMAGE_JOIN_REQUEST__INIT;
	struct hr_grpc_call g = {.path = "/modal.client.ModalClient/ImageJoinStreaming",
	    .q = &q.base,
	    .type = &hr_pb__image_join_answer__descriptor,
	    .each = on_build,
	    .deadline_s = 2 * HR_MODAL_POLL_S};
	struct build b = {.c = c};
	struct hr_grpc_end end;
	char *copy = strdup(id);
	int r = copy != NULL ? 0 : hr_err_nomem(err);

	g.arg = &b;
	q.image_id = copy;
	q.has_timeout = 1;
	q.timeout = 55;
	for (i = 0; r == 0 && b.finished == 0; i++) {
		if (i == POLLS_MAX) {
			r = hr_err_set(err, HR_E_RUNTIME_TIMEOUT,
			    HR_MODAL_WHO ": the image %s is not built after %d minutes", id,
			    POLLS_MAX * 55 / 60);
			break;
		}
		q.last_entry_id = b.entry;
		r = hr_grpc_do(&hr_modal_of(c)->api, &g, NULL, &end, err);
		/* a stream that was cut continues after its last entry */
		if (r != 0 && end.status == HR_GRPC_LOST && end.messages > 0)
			r = 0;
	}
	free(b.entry);
	free(copy);
	return r;
}

int
hr_modal_image(struct hr_cloud *c, const char *name, char **ret_id, struct hr_err *err)
{
	const char *p;

	HrPb__ImageRequest q = HR_PB__IMAGE_REQUEST__INIT;
	HrPb__Image image = HR_PB__IMAGE__INIT;
	HrPb__Empty empty = HR_PB__EMPTY__INIT;
	HR_CLEAN(hr_pb_done) HrPb__ImageAnswer *a = NULL;
	HR_FREE char *version = NULL;
	HR_FREE char *line = NULL;
	int r, done = 0;

	for (p = name; *p != '\0'; p++)
		if ((unsigned char)*p <= ' ' || *p == 0x7f)
			return hr_err_set(err, HR_E_INVAL,
			    HR_MODAL_WHO
			    ": an image's name has no blanks or control characters, as \"%.100s\" "
			    "has",
			    name);
	r = builder_version(c, &version, err);
	if (r == 0)
		r = hr_text_setf(&line, err, "FROM %s", name);
	image.n_dockerfile_commands = 1;
	image.dockerfile_commands = &line;
	image.gpu_config = &empty;
	image.image_registry_config = &empty;
	q.image = &image;
	q.app_id = hr_modal_of(c)->app_id;
	q.has_namespace_ = 1;
	q.namespace_ = 1;
	q.builder_version = version;
	if (r == 0)
		r = hr_modal_call(
		    c, "ImageGetOrCreate", &q.base, &hr_pb__image_answer__descriptor, &a, err);
	if (r == 0)
		r = hr_pb_text("the answer of ImageGetOrCreate", "image_id", a->image_id, err);
	if (r == 0)
		done = verdict("building the image", a->result, err);
	if (done < 0)
		r = -1;
	if (r == 0 && done == 0)
		r = wait_built(c, a->image_id, err);
	if (r == 0)
		r = hr_text_set(ret_id, a->image_id, err);
	return r;
}
