/* The calls that write to a process: an answer comes when all bytes are written. */
#include "config.h"

#include <stdlib.h>

#include "e2b/entry.h"
#include "plugins/envd/calls.h"
#include "plugins/envd/table.h"
#include "proto/json.h"

/* The input of one call. */
struct delivery {
	struct envd_input in;
	struct envd_call *c;
	struct hr_buf bytes;
	pid_t pid;
	bool pty;
};

static void
delivery_end(struct delivery *d, const struct hr_connect_error *e)
{
	if (e == NULL)
		envd_call_answer(d->c, hr_span_of("{}"));
	else
		envd_call_end(d->c, e);
	hr_buf_done(&d->bytes);
	free(d);
}

static void
on_delivered(struct envd_input *in, int sys)
{
	struct delivery *d = (struct delivery *)(void *)in;
	const char *where = d->pty ? "tty" : "stdin";
	struct hr_connect_error e;
	HR_BUF(why, 256);

	hr_e2b_entry_errno(&why, sys);
	if (sys != 0)
		(void)hr_connect_fail(&e, HR_CONNECT_INTERNAL,
		    "error writing to %s: error writing to %s of process '%ld': write %s: %s",
		    where, where, (long)d->pid, d->pty ? "/dev/ptmx" : "|1", hr_buf_str(&why));
	delivery_end(d, sys != 0 ? &e : NULL);
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
	hr_buf_add(&d->bytes, text.p, text.len);
	return hr_buf_check(&d->bytes, NULL) == 0
		   ? 0
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
	hr_buf_init(&d->bytes, HR_CONNECT_FRAME_MAX);
	return d;
}

static void
deliver(struct delivery *d, struct envd_process *p)
{
	static const struct envd_events events = {NULL, on_sender_over};

	d->pid = envd_process_pid(p);
	d->in.p = hr_buf_str(&d->bytes);
	d->in.len = d->bytes.len;
	envd_call_wait(d->c, &events, d);
	envd_process_write(p, &d->in);
}

void
envd_call_input(struct envd_call *c)
{
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
	if (add_input(d, p, hr_json_at(c->in, "input"), &e) != 0)
		delivery_end(d, &e);
	else
		deliver(d, p);
}

void
envd_call_stream(struct envd_call *c)
{
	struct delivery *d = delivery_new(c);
	struct envd_process *p = NULL;
	struct hr_connect_error e;
	struct json_object *m;
	size_t i, n = hr_json_count(c->in);
	int r = 0;

	if (d == NULL)
		return;
	for (i = 0; r == 0 && i < n; i++) {
		m = hr_json_entry(c->in, i);
		if (hr_json_at(m, "start") != NULL) {
			p = envd_select(c->envd, hr_json_at(m, "start"), false, &e);
			r = p != NULL ? 0 : -1;
		} else if (hr_json_at(m, "data") != NULL) {
			r = p != NULL
				? add_input(d, p, hr_json_at(hr_json_at(m, "data"), "input"), &e)
				: hr_connect_fail(&e, HR_CONNECT_FAILED_PRECONDITION,
				      "the first message must be \"start\"");
		}
	}
	if (r != 0)
		delivery_end(d, &e);
	else if (p == NULL || d->bytes.len == 0)
		delivery_end(d, NULL);
	else
		deliver(d, p);
}
