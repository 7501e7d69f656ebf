/* Runs commands in a Modal sandbox, through its router. Output is a stream that continues at an
 * offset, or, by the older routes, after the last batch; handrail chooses the command's id, so a
 * repeated start does not start a second one. */
#include "config.h"

#include "host/modal/modal.h"

#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/err.h"
#include "base/random.h"
#include "host/modal/pb.h"

#define ROUTER "/modal.task_command_router.TaskCommandRouter/"
#define WAIT_S 59
#define OLD_READ_S 55
#define OLD_WAIT_S 10

/* Sends a call to the router. If its token has expired, the router has done nothing, and the call
 * is repeated with a new token. */
static int
ask(struct hr_cloud *c, const struct hr_grpc_call *g, void *ret, struct hr_grpc_end *end,
    struct hr_err *err)
{
	struct hr_modal *m = hr_modal_of(c);
	int r = hr_grpc_do(&m->router, g, ret, end, err);

	if (r == 0 || end->status != HR_GRPC_UNAUTHENTICATED)
		return r;
	hr_grpc_done(&m->router);
	return hr_modal_task(c, err) == 0 ? hr_grpc_do(&m->router, g, ret, end, err) : -1;
}

static int
start(struct hr_cloud *c, const struct hr_modal_exec *e, char *id, struct hr_err *err)
{
	HrPb__StartRequest q = HR_PB__START_REQUEST__INIT;
	const struct hr_grpc_call g = {
	    .path = ROUTER "TaskExecStart", .q = &q.base, .type = &hr_pb__empty__descriptor};
	HR_CLEAN(hr_modal_texts_done) struct hr_modal_texts env = {0};
	struct hr_err mine = {0};
	struct hr_grpc_end end;
	HR_CLEAN(hr_pb_done) HrPb__Empty *a = NULL;
	int r = hr_modal_texts(&env, e->q->env, &mine);

	q.task_id = hr_modal_of(c)->task;
	q.exec_id = id;
	while (e->argv[q.n_command_args] != NULL)
		q.n_command_args++;
	memcpy(&q.command_args, &e->argv, sizeof(e->argv)); /* the API only reads argv */
	/* otherwise the output is discarded */
	q.has_stdout_config = q.has_stderr_config = !e->leave;
	q.stdout_config = q.stderr_config = 1;
	if (e->q->cwd != NULL)
		memcpy(&q.workdir, &e->q->cwd, sizeof(e->q->cwd));
	q.n_env = env.n;
	q.env = env.each;
	if (r == 0)
		r = ask(c, &g, &a, &end, &mine);
	/* an earlier attempt, whose answer was lost, has started the program */
	if (r != 0 && mine.code == HR_E_RUNTIME && end.status == HR_GRPC_EXISTS)
		r = 0;
	return r != 0 ? hr_err_pass(err, &mine) : 0;
}

/* Repeats a write at the same offset, so that repeated bytes count once. */
static int
write_input(struct hr_cloud *c, char *id, const char *p, size_t len, struct hr_err *err)
{
	size_t at;

	HrPb__WriteRequest q = HR_PB__WRITE_REQUEST__INIT;
	const struct hr_grpc_call g = {
	    .path = ROUTER "TaskExecStdinWrite", .q = &q.base, .type = &hr_pb__empty__descriptor};
	int r = 0;

	q.task_id = hr_modal_of(c)->task;
	q.exec_id = id;
	q.has_offset = q.has_data = 1;
	for (at = 0; r == 0 && !q.has_eof; at += q.data.len) {
		struct hr_grpc_end end;
		HR_CLEAN(hr_pb_done) HrPb__Empty *a = NULL;

		q.offset = at;
		q.data.len = len - at < HR_MODAL_CHUNK ? len - at : HR_MODAL_CHUNK;
		if (q.data.len > 0) {
			const char *from = p + at;

			memcpy(&q.data.data, &from, sizeof(from));
		}
		q.has_eof = q.eof = at + q.data.len == len;
		r = ask(c, &g, &a, &end, err);
	}
	return r;
}

struct stream {
	const struct hr_cloud_command *q;
	int number;
	uint64_t at; /* bytes that were read; by the older routes, number of the last batch */
	bool came, ended;
};

/* Returns true if a stream ended without a reason of its own. */
static bool
may_continue(const struct hr_grpc_end *end)
{
	return end->status == HR_GRPC_LOST || end->status == HR_GRPC_UNAVAILABLE ||
	       end->status == HR_GRPC_DEADLINE;
}

static int
broke_off(struct hr_err *err)
{
	return hr_err_set(err, HR_E_PROTO,
	    HR_MODAL_WHO ": the stream of the command keeps breaking off, so its end is unknown");
}

static int
on_data(void *arg, const ProtobufCMessage *m, struct hr_err *err)
{
	struct stream *s = arg;
	HrPb__Read a;

	memcpy(&a, m, sizeof(a));
	if (!a.has_data)
		return hr_err_set(err, HR_E_PROTO,
		    HR_MODAL_WHO ": the answer of TaskExecStdioRead has no \"data\"");
	if (s->q->output != NULL && a.data.len > 0)
		s->q->output(s->q->arg, s->number, (const char *)a.data.data, a.data.len);
	s->at += a.data.len;
	s->came = true;
	return 0;
}

/* Follows the stream to its end. Returns 1 at the timeout. */
static int
follow(struct hr_cloud *c, struct stream *s, char *id, int timer, struct hr_err *err)
{
	HrPb__ReadRequest q = HR_PB__READ_REQUEST__INIT;
	const struct hr_grpc_call g = {.path = ROUTER "TaskExecStdioRead",
	    .q = &q.base,
	    .type = &hr_pb__read__descriptor,
	    .each = on_data,
	    .arg = s,
	    .watch_fd = timer};
	struct hr_cloud_cuts cuts = {.since_ms = hr_now_ms()};
	struct hr_grpc_end end;
	int r;

	q.task_id = hr_modal_of(c)->task;
	q.exec_id = id;
	q.has_file_descriptor = s->number == HR_MODAL_STDERR;
	q.file_descriptor = 1;
	do {
		q.has_offset = s->at > 0;
		q.offset = s->at;
		s->came = false;
		r = ask(c, &g, NULL, &end, err);
		if (r == 0)
			return 0;
		if (hr_fd_is_readable(timer))
			return 1;
		if (!may_continue(&end))
			return -1;
	} while (hr_cloud_goes_on(&cuts, s->came, hr_now_ms()));
	return broke_off(err);
}

static int
no_wait(struct hr_err *err)
{
	return hr_err_set(err, HR_E_PROTO,
	    HR_MODAL_WHO ": the service does not wait for the command, so its end is unknown");
}

/* Returns 0 with the exit status, or 1 at the timeout. */
static int
wait_end(struct hr_cloud *c, char *id, int timer, struct hr_cloud_end *ret, struct hr_err *err)
{
	HrPb__TaskRequest q = HR_PB__TASK_REQUEST__INIT;
	const struct hr_grpc_call g = {.path = ROUTER "TaskExecWait",
	    .q = &q.base,
	    .type = &hr_pb__task_waited__descriptor,
	    .deadline_s = WAIT_S,
	    .watch_fd = timer};
	struct hr_cloud_cuts cuts = {.since_ms = hr_now_ms()};
	struct hr_grpc_end end;
	HR_CLEAN(hr_pb_done) HrPb__TaskWaited *a = NULL;
	int r;

	q.task_id = hr_modal_of(c)->task;
	q.exec_id = id;
	while ((r = ask(c, &g, &a, &end, err)) != 0) {
		if (hr_fd_is_readable(timer))
			return 1;
		if (end.status != HR_GRPC_DEADLINE)
			return -1;
		if (!hr_cloud_goes_on(&cuts, false, hr_now_ms()))
			return no_wait(err);
	}
	if (a->has_code)
		ret->code = a->code;
	else if (a->has_signal && a->signal > 0 && a->signal < 128)
		ret->code = 128 + a->signal;
	else
		r = hr_err_set(
		    err, HR_E_PROTO, HR_MODAL_WHO ": the answer of TaskExecWait has no \"code\"");
	return r;
}

/* ---- the older routes, through the API ---- */

/* Variables become a secret of the account because the route has no field for them. */
static int
old_start(struct hr_cloud *c, const struct hr_modal_exec *e, char **ret_id, struct hr_err *err)
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
		r = hr_pb_text("the answer of ContainerExec", "exec_id", a->exec_id, err);
	if (r == 0)
		r = hr_text_set(ret_id, a->exec_id, err);
	return r;
}

/* Writes the input in pieces, numbered from 1, so that a repeated one counts once. */
static int
old_write_input(struct hr_cloud *c, char *id, const char *p, size_t len, struct hr_err *err)
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
	for (i = 0; a.batch_index > s->at && i < a.n_items; i++) {
		if (!a.items[i]->has_message_bytes)
			return hr_err_set(err, HR_E_PROTO,
			    HR_MODAL_WHO
			    ": the answer of ContainerExecGetOutput has no \"message_bytes\"");
		if (s->q->output != NULL && a.items[i]->message_bytes.len > 0)
			s->q->output(s->q->arg, s->number,
			    (const char *)a.items[i]->message_bytes.data,
			    a.items[i]->message_bytes.len);
	}
	if (a.batch_index > s->at)
		s->at = a.batch_index;
	s->came = true;
	return 0;
}

/* Follows the stream to its end. Returns 1 at the timeout. */
static int
old_follow(struct hr_cloud *c, struct stream *s, char *id, int timer, struct hr_err *err)
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
	q.timeout = OLD_READ_S;
	q.file_descriptor = s->number;
	while (!s->ended && more) {
		struct hr_grpc_end end;

		q.has_last_batch_index = s->at > 0;
		q.last_batch_index = s->at;
		s->came = false;
		r = hr_grpc_do(&hr_modal_of(c)->api, &g, NULL, &end, err);
		if (hr_fd_is_readable(timer))
			return 1;
		if (r != 0 && !may_continue(&end))
			return -1;
		/* repeats the request: the poll timed out or was cut */
		more = hr_cloud_goes_on(&cuts, s->came, hr_now_ms());
	}
	return s->ended ? 0 : broke_off(err);
}

static int
old_wait_end(struct hr_cloud *c, char *id, int timer, struct hr_cloud_end *ret, struct hr_err *err)
{
	HrPb__ExecWaitRequest q = HR_PB__EXEC_WAIT_REQUEST__INIT;
	struct hr_cloud_cuts cuts = {.since_ms = hr_now_ms()};
	bool completed = false;
	int r = 0;

	q.exec_id = id;
	q.has_timeout = 1;
	q.timeout = OLD_WAIT_S;
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
		if (r == 0 && !completed && hr_fd_is_readable(timer))
			return 1;
		if (r == 0 && !completed && !hr_cloud_goes_on(&cuts, false, hr_now_ms()))
			r = no_wait(err);
	}
	return r;
}

static int
old_run(struct hr_cloud *c, const struct hr_modal_exec *e, int timer, struct hr_cloud_end *ret,
    struct hr_err *err)
{
	struct stream out = {.q = e->q, .number = HR_MODAL_STDOUT},
		      error = {.q = e->q, .number = HR_MODAL_STDERR};
	HR_FREE char *id = NULL;
	int r = old_start(c, e, &id, err);

	if (r == 0 && !e->leave) {
		r = e->input != NULL ? old_write_input(c, id, e->input, e->input_len, err) : 0;
		if (r == 0)
			r = old_follow(c, &out, id, timer, err);
		if (r == 0)
			r = old_follow(c, &error, id, timer, err);
		if (r == 0)
			r = old_wait_end(c, id, timer, ret, err);
	}
	return r;
}

/* ---- both ---- */

static int
run(struct hr_cloud *c, const struct hr_modal_exec *e, int timer, struct hr_cloud_end *ret,
    struct hr_err *err)
{
	struct stream out = {.q = e->q, .number = HR_MODAL_STDOUT},
		      error = {.q = e->q, .number = HR_MODAL_STDERR};
	char id[37];
	int r;

	if (hr_random_uuid(id, err) != 0 || start(c, e, id, err) != 0)
		return -1;
	if (e->leave)
		return 0;
	r = e->input != NULL ? write_input(c, id, e->input, e->input_len, err) : 0;
	if (r == 0)
		r = follow(c, &out, id, timer, err);
	if (r == 0)
		r = wait_end(c, id, timer, ret, err);
	if (r == 0)
		r = follow(c, &error, id, timer, err);
	return r;
}

int
hr_modal_run(
    struct hr_cloud *c, const struct hr_modal_exec *e, struct hr_cloud_end *ret, struct hr_err *err)
{
	int r;
	HR_CLOSE int timer = -1;

	*ret = (struct hr_cloud_end){.code = -1};
	if (hr_modal_task(c, err) != 0)
		return -1;
	if (e->q->timeout_ms > 0 && (timer = hr_cloud_timer(e->q->timeout_ms, err)) < 0)
		return -1;
	r = c->old ? old_run(c, e, timer, ret, err) : run(c, e, timer, ret, err);
	if (r == 1) {
		ret->timed_out = true;
		ret->code = -1;
		r = 0;
	}
	return r;
}
