/* Runs commands by Modal's older routes, through the API. Variables become a secret of the account
 * because the route has no field for them; a stream continues after the last batch. */
#include "config.h"

#include "host/modal/modal.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "host/modal/pb.h"

#define READ_S 55
#define WAIT_S 10

static int
start(struct hr_cloud *c, const struct hr_modal_exec *e, char **ret_id, struct hr_err *err)
{
	HrPb__ExecRequest q = HR_PB__EXEC_REQUEST__INIT;
	const struct hr_grpc_call g = {.path = "/modal.client.ModalClient/ContainerExec",
	    .q = &q.base,
	    .type = &hr_pb__exec__descriptor,
	    .once = true,
	    .key = true};
	struct hr_grpc_end end;
	HR_FREE char *secret = NULL;
	HR_CLEAN(hr_pb_done) HrPb__Exec *a = NULL;
	int r = 0;

	if (e->q->env != NULL && *e->q->env != NULL) {
		r = hr_modal_secret(c, e->q->env, &secret, err);
		q.n_secret_ids = 1;
		q.secret_ids = &secret;
	}
	q.task_id = hr_modal_of(c)->task;
	while (e->argv[q.n_command] != NULL)
		q.n_command++;
	memcpy(&q.command, &e->argv, sizeof(e->argv)); /* the API only reads argv */
	if (e->q->cwd != NULL)
		memcpy(&q.workdir, &e->q->cwd, sizeof(e->q->cwd));
	if (r == 0)
		r = hr_grpc_do(&hr_modal_of(c)->api, &g, &a, &end, err);
	if (r == 0)
		r = hr_pb_text(
		    HR_MODAL_WHO, "the answer of ContainerExec", "exec_id", a->exec_id, err);
	if (r == 0)
		r = hr_text_set(ret_id, a->exec_id, err);
	return r;
}

/* Writes the input in pieces, numbered from 1, so that a repeated one counts once. */
static int
write_input(struct hr_cloud *c, char *id, const char *p, size_t len, struct hr_err *err)
{
	size_t at;

	HrPb__InputRequest q = HR_PB__INPUT_REQUEST__INIT;
	HrPb__Input in = HR_PB__INPUT__INIT;
	int r = 0;

	q.exec_id = id;
	q.input = &in;
	in.has_message = in.has_message_index = 1;
	for (at = 0; r == 0 && !in.has_eof; at += in.message.len) {
		const char *from = p + at;
		HR_CLEAN(hr_pb_done) HrPb__Empty *a = NULL;

		in.message.len = len - at < HR_MODAL_CHUNK ? len - at : HR_MODAL_CHUNK;
		memcpy(&in.message.data, &from, sizeof(from));
		in.message_index++;
		in.has_eof = in.eof = at + in.message.len == len;
		r = hr_modal_call(
		    c, "ContainerExecPutInput", &q.base, &hr_pb__empty__descriptor, &a, err);
	}
	return r;
}

struct stream {
	const struct hr_cloud_command *q;
	int number;
	uint64_t last; /* number of the last batch that was read */
	bool came, ended;
};

static int
on_batch(void *arg, const ProtobufCMessage *m, struct hr_err *err)
{
	struct stream *s = arg;
	size_t i;
	HrPb__OutputBatch a;

	memcpy(&a, m, sizeof(a));
	if (a.has_exit_code) {
		s->ended = true;
		return 1;
	}
	if (!a.has_batch_index)
		return hr_err_set(err, HR_E_PROTO,
		    HR_MODAL_WHO ": the answer of ContainerExecGetOutput has no \"batch_index\"");
	for (i = 0; a.batch_index > s->last && i < a.n_items; i++) {
		if (!a.items[i]->has_message_bytes)
			return hr_err_set(err, HR_E_PROTO,
			    HR_MODAL_WHO
			    ": the answer of ContainerExecGetOutput has no \"message_bytes\"");
		if (s->q->output != NULL && a.items[i]->message_bytes.len > 0)
			s->q->output(s->q->arg, s->number,
			    (const char *)a.items[i]->message_bytes.data,
			    a.items[i]->message_bytes.len);
	}
	if (a.batch_index > s->last)
		s->last = a.batch_index;
	s->came = true;
	return 0;
}

/* Follows the stream to its end. Returns 1 at the timeout. */
static int
follow(struct hr_cloud *c, struct stream *s, char *id, int timer, struct hr_err *err)
{
	HrPb__OutputRequest q = HR_PB__OUTPUT_REQUEST__INIT;
	const struct hr_grpc_call g = {.path = "/modal.client.ModalClient/ContainerExecGetOutput",
	    .q = &q.base,
	    .type = &hr_pb__output_batch__descriptor,
	    .each = on_batch,
	    .arg = s,
	    .watch_fd = timer};
	struct hr_cloud_cuts cuts = {.since_ms = hr_now_ms()};
	bool more = true;
	int r;

	q.exec_id = id;
	q.has_timeout = q.has_file_descriptor = q.has_get_raw_bytes = q.get_raw_bytes = 1;
	q.timeout = READ_S;
	q.file_descriptor = s->number;
	while (!s->ended && more) {
		struct hr_grpc_end end;

		q.has_last_batch_index = s->last > 0;
		q.last_batch_index = s->last;
		s->came = false;
		r = hr_grpc_do(&hr_modal_of(c)->api, &g, NULL, &end, err);
		if (hr_cloud_timer_over(timer))
			return 1;
		if (r != 0 && end.status != HR_GRPC_LOST && end.status != HR_GRPC_UNAVAILABLE &&
		    end.status != HR_GRPC_DEADLINE)
			return -1;
		/* repeats the request: the poll timed out or was cut */
		more = hr_cloud_goes_on(&cuts, s->came, hr_now_ms());
	}
	return s->ended
		   ? 0
		   : hr_err_set(err, HR_E_PROTO,
			 HR_MODAL_WHO
			 ": the stream of the command keeps breaking off, so its end is unknown");
}

static int
wait_end(struct hr_cloud *c, char *id, int timer, struct hr_cloud_end *ret, struct hr_err *err)
{
	HrPb__ExecWaitRequest q = HR_PB__EXEC_WAIT_REQUEST__INIT;
	bool completed = false;
	int r = 0;

	q.exec_id = id;
	q.has_timeout = 1;
	q.timeout = WAIT_S;
	while (r == 0 && !completed) {
		HR_CLEAN(hr_pb_done) HrPb__ExecWaited *a = NULL;

		r = hr_modal_call(
		    c, "ContainerExecWait", &q.base, &hr_pb__exec_waited__descriptor, &a, err);
		completed = r == 0 && a->has_completed && a->completed;
		if (completed && !a->has_exit_code)
			r = hr_err_set(err, HR_E_PROTO,
			    HR_MODAL_WHO ": the answer of ContainerExecWait has no \"exit_code\"");
		else if (completed)
			ret->code = a->exit_code;
		if (r == 0 && !completed && hr_cloud_timer_over(timer))
			return 1;
	}
	return r;
}

int
hr_modal_run_old(struct hr_cloud *c, const struct hr_modal_exec *e, int timer,
    struct hr_cloud_end *ret, struct hr_err *err)
{
	struct stream out = {.q = e->q, .number = HR_MODAL_STDOUT},
		      error = {.q = e->q, .number = HR_MODAL_STDERR};
	HR_FREE char *id = NULL;
	int r = start(c, e, &id, err);

	if (r == 0 && !e->leave) {
		r = e->input != NULL ? write_input(c, id, e->input, e->input_len, err) : 0;
		if (r == 0)
			r = follow(c, &out, id, timer, err);
		if (r == 0)
			r = follow(c, &error, id, timer, err);
		if (r == 0)
			r = wait_end(c, id, timer, ret, err);
	}
	return r;
}
