/* The calls that write to a process: an answer comes when all bytes are written. */
#include "config.h"

#include <stdlib.h>

#include "e2b/entry.h"
#include "http/serve.h"
#include "plugins/envd/calls.h"
#include "plugins/envd/table.h"
#include "proto/json.h"

/* The input of one call. */
struct delivery {
	struct envd_input in;
	struct envd_call *c;
	struct envd_process *process; /* the process that a stream has named; NULL: none so far */
	pid_t pid;
	bool pty;
	bool writes, runs; /* bytes of a stream are being written; stream_run() is on the stack */
	int sys;           /* the errno of a failed write of a stream */
};

static void
delivery_end(struct delivery *d, const struct hr_connect_error *e)
{
	if (e == NULL)
		envd_call_answer(d->c, hr_span_of("{}"));
	else
		envd_call_end(d->c, e);
	free(d);
}

static int
fail_write(const struct delivery *d, int sys, struct hr_connect_error *e)
{
	const char *where = d->pty ? "tty" : "stdin";
	HR_BUF(why, 256);

	hr_e2b_entry_errno(&why, sys);
	return hr_connect_fail(e, HR_CONNECT_INTERNAL,
	    "error writing to %s: error writing to %s of process '%ld': write %s: %s", where, where,
	    (long)d->pid, d->pty ? "/dev/ptmx" : "|1", hr_buf_str(&why));
}

static void
on_delivered(struct envd_input *in, int sys)
{
	struct delivery *d = (struct delivery *)(void *)in;
	struct hr_connect_error e;

	delivery_end(d, sys != 0 && fail_write(d, sys, &e) != 0 ? &e : NULL);
}

/* Handles a client that leaves: it takes back the bytes that were not written yet. */
static void
on_sender_over(void *arg)
{
	struct delivery *d = arg;
	struct hr_connect_error e;

	envd_input_cancel(&d->in);
	(void)hr_connect_fail(&e, HR_CONNECT_DEADLINE_EXCEEDED, "context deadline exceeded");
	delivery_end(d, &e);
}

/* Checks that the process takes this input, and adds its bytes. */
static int
add_input(struct delivery *d, const struct envd_process *p, struct json_object *in,
    struct hr_connect_error *e)
{
	struct hr_span keys = hr_json_span_or(in, "pty", NULL);
	struct hr_span text = hr_json_span_or(in, "stdin", NULL);

	d->pty = keys.p != NULL;
	if (keys.p == NULL && text.p == NULL)
		return hr_connect_fail(e, HR_CONNECT_UNIMPLEMENTED, "invalid input type <nil>");
	if (keys.p != NULL && !envd_process_has_pty(p))
		return hr_connect_fail(
		    e, HR_CONNECT_INTERNAL, "error writing to tty: tty not assigned to process");
	if (text.p != NULL && envd_process_has_pty(p))
		return hr_connect_fail(e, HR_CONNECT_INTERNAL,
		    "error writing to stdin: tty assigned to process \xE2\x80\x94 input should be "
		    "written to the pty, not the stdin");
	if (!envd_process_takes_input(p))
		return hr_connect_fail(
		    e, HR_CONNECT_INTERNAL, "error writing to stdin: stdin not enabled or closed");
	if (d->pty)
		text = keys;
	hr_buf_add(&d->c->input, text.p, text.len);
	return hr_buf_check(&d->c->input, NULL) == 0
		   ? envd_call_hold(d->c, e)
		   : hr_connect_fail(e, HR_CONNECT_RESOURCE_EXHAUSTED, "the input is too long");
}

static struct delivery *
delivery_new(struct envd_call *c)
{
	struct delivery *d = calloc(1, sizeof(*d));
	struct hr_connect_error e;

	if (d == NULL) {
		(void)hr_connect_fail(&e, HR_CONNECT_UNKNOWN, "out of memory");
		envd_call_end(c, &e);
		return NULL;
	}
	d->c = c;
	d->in.done = on_delivered;
	return d;
}

static void
deliver(struct delivery *d, struct envd_process *p)
{
	d->pid = envd_process_pid(p);
	d->in.p = hr_buf_str(&d->c->input);
	d->in.len = d->c->input.len;
	envd_process_write(p, &d->in);
}

void
envd_call_input(struct envd_call *c)
{
	static const struct envd_events events = {.over = on_sender_over};
	struct hr_connect_error e;
	struct envd_process *p = envd_select(c->envd, c->in, false, &e);
	struct delivery *d;

	if (p == NULL) {
		envd_call_end(c, &e);
		return;
	}
	d = delivery_new(c);
	if (d == NULL)
		return;
	if (add_input(d, p, hr_json_at(c->in, "input"), &e) != 0) {
		delivery_end(d, &e);
		return;
	}
	/* the call may wait for long: only its bytes stay */
	hr_json_drop(&c->in);
	hr_serve_drop(c->q);
	envd_call_wait(c, &events, d);
	deliver(d, p);
}

/* ---- StreamInput ---- */

static int
take_message(struct delivery *d, struct json_object *m, struct hr_connect_error *e)
{
	struct json_object *start = hr_json_at(m, "start"), *data = hr_json_at(m, "data");

	if (start != NULL) {
		d->process = envd_select(d->c->envd, start, false, e);
		return d->process != NULL ? 0 : -1;
	}
	if (data == NULL)
		return 0;
	if (d->process == NULL)
		return hr_connect_fail(
		    e, HR_CONNECT_FAILED_PRECONDITION, "the first message must be \"start\"");
	return add_input(d, d->process, hr_json_at(data, "input"), e);
}

/* Reads messages until one has bytes for the process. Returns 1, without bytes if none has arrived;
 * 0 at the end; or -1 with *e. */
static int
take_messages(struct delivery *d, struct hr_connect_error *e)
{
	struct json_object *m;
	int r;

	hr_buf_done(&d->c->input);
	hr_buf_init(&d->c->input, HR_CONNECT_FRAME_MAX);
	while (d->c->input.len == 0) {
		r = envd_call_read(d->c, &m, e);
		if (r <= 0 || m == NULL)
			return r;
		r = take_message(d, m, e);
		json_object_put(m);
		if (r != 0)
			return -1;
	}
	return 1;
}

/* Writes messages as they arrive, one after the other. */
static void
stream_run(struct delivery *d)
{
	struct hr_connect_error e;
	int r = 1;

	envd_input_cancel(&d->in);
	d->runs = true;
	while (r > 0 && !d->writes) {
		r = d->sys != 0 ? fail_write(d, d->sys, &e) : take_messages(d, &e);
		if (r <= 0 || d->c->input.len == 0)
			break;
		d->writes = true;
		deliver(d, d->process);
	}
	d->runs = false;
	if (r <= 0)
		delivery_end(d, r < 0 ? &e : NULL);
	else if (!d->writes && d->process != NULL)
		envd_process_await(d->process, &d->in);
}

static void
on_arrived(void *arg)
{
	struct delivery *d = arg;

	if (!d->writes)
		stream_run(d);
	else if (hr_serve_is_cut(d->c->q)) /* the process might never read */
		on_sender_over(d);
}

/* Handles the end of a write, or of the process while the call waits for a message. */
static void
on_written(struct envd_input *in, int sys)
{
	struct delivery *d = (struct delivery *)(void *)in;

	if (!d->writes) {
		delivery_end(d, NULL);
		return;
	}
	d->writes = false;
	d->sys = sys;
	if (!d->runs)
		stream_run(d);
}

void
envd_call_stream(struct envd_call *c)
{
	static const struct envd_events events = {.over = on_sender_over, .arrived = on_arrived};
	struct delivery *d = delivery_new(c);

	if (d == NULL)
		return;
	d->in.done = on_written;
	envd_call_wait(c, &events, d);
	stream_run(d);
}
