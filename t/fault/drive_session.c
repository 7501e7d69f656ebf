/* session: the state machine of a shell, its view, its hook and reports, and the directory that it
 * shares with the shell. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "fault.h"
#include "session/core.h"
#include "session/environ.h"
#include "session/prompt/hook.h"
#include "session/outlog.h"
#include "session/prompt/report.h"
#include "session/statedir.h"

struct world {
	struct hr_core *core;
	unsigned results, restarts;
	bool is_error, in_readline;
};

static void
op_type(void *arg, const char *p, size_t len, bool literal)
{
	(void)arg;
	(void)p;
	(void)len;
	(void)literal;
}

static void
op_ack(void *arg, bool careful)
{
	(void)arg;
	(void)careful;
}

static bool
op_in_readline(void *arg)
{
	return ((struct world *)arg)->in_readline;
}

static bool
op_blind(void *arg)
{
	(void)arg;
	return false;
}

static bool
op_echoes(void *arg)
{
	(void)arg;
	return true;
}

static const char *
op_restart(void *arg, struct hr_err *err)
{
	struct world *w = arg;

	if (w->restarts++ < 3)
		return "/w";
	(void)hr_err_set(err, HR_E_SYS, "no more shells");
	return NULL;
}

static void
op_result(void *arg, const struct hr_run_result *r)
{
	struct world *w = arg;

	w->results++;
	w->is_error = r->is_error;
	fault_tell("%d %d [", r->is_error, (int)r->exit_code);
	fault_tell_bytes(r->content.p, r->content.len);
	fault_tell("] ");
	fault_tell_bytes(r->suffix.p, r->suffix.len);
}

static void
op_ready(void *arg)
{
	(void)arg;
}

static const struct hr_core_ops ops = {.type = op_type,
    .ack = op_ack,
    .in_readline = op_in_readline,
    .blind = op_blind,
    .echoes = op_echoes,
    .restart = op_restart,
    .result = op_result,
    .ready = op_ready};

static void
feed(struct world *w, const char *text, int64_t now)
{
	hr_core_output(w->core, text, strlen(text), now);
}

static void
shell_prompt(struct world *w, int exit_code, int64_t now)
{
	const struct hr_core_prompt p = {.exit_code = exit_code,
	    .job = -1,
	    .username = "me",
	    .working_dir = "/w",
	    .py_path = "",
	    .flags = "hi",
	    .has_readline = true,
	    .is_session = true};

	hr_core_prompt(w->core, &p, now);
	w->in_readline = true;
	feed(w, "\033[?2004h", now);
}

static void
command(struct world *w, const char *text, int64_t now)
{
	const struct hr_run_request r = {.command = hr_span_of(text)};

	hr_core_request(w->core, &r, now);
	if (!hr_core_busy(w->core))
		return;
	feed(w, text, now);
	w->in_readline = false;
	feed(w, "\r\n\033[?2004l\r" HR_HOOK_STARTED, now);
	feed(w, "first line\r\nsecond\r\n", now + 1);
	shell_prompt(w, 3, now + 2);
}

/* Whatever fails: one answer for each request, and none for ever. */
static int
play(struct world *w, struct hr_err *err)
{
	const unsigned asked = 2;
	int64_t now = 1000;
	unsigned i;

	hr_core_started(w->core, "/w", now);
	shell_prompt(w, 0, now);
	command(w, "make it so", now += 100);
	for (i = 0; i < 100 && hr_core_busy(w->core); i++)
		hr_core_timer(w->core, now += 60000);
	if (!hr_core_busy(w->core))
		command(w, "once \\\nmore", now += 100);
	for (i = 0; i < 100 && hr_core_busy(w->core); i++)
		hr_core_timer(w->core, now += 60000);
	if (hr_core_busy(w->core))
		hr_core_exited(w->core, 1, now);
	if (w->results != asked)
		return -1; /* without an error: wrong */
	return w->is_error ? hr_err_set(err, HR_E_NOMEM, "an error observation") : 0;
}

static int
core(struct hr_err *err)
{
	struct hr_hook hook;
	const struct hr_core_config config = {
	    .no_change_ms = 10000, .hostname = "box", .hook = &hook};
	struct world w = {0};
	int r = -1;

	if (hr_hook_init(&hook, "/s", NULL, err) != 0)
		return -1;
	w.core = hr_core_new(&config, &ops, &w, err);
	if (w.core != NULL)
		r = play(&w, err);
	hr_core_free(w.core);
	hr_hook_done(&hook);
	return r;
}

static int
hook_texts(struct hr_err *err)
{
	struct hr_hook h;
	HR_BUF(b, 1 << 20);
	int r;

	if (hr_hook_init(&h, fault_dir(), NULL, err) != 0)
		return -1;
	hr_hook_rcfile(&h, false, "/m", &b);
	hr_hook_heal(&h, &b);
	hr_hook_ack_readline(&b);
	hr_hook_ack_snapshot(&h, &b);
	r = hr_buf_check(&b, err);
	fault_tell("%d", b.len > 500); /* the nonce and the directory differ each time */
	hr_hook_done(&h);
	return r;
}

/* Short of memory it drops what it has and finds the next report. */
static int
reports(struct hr_err *err)
{
	static const char one[] = "hr1\0nonce\0"
				  "12\0"
				  "3\0"
				  "-1\0"
				  "1000\0/w\0/bin\0xterm\0hi";
	struct hr_report_reader r;
	struct hr_report got;
	unsigned i, n = 0;

	(void)err;
	hr_report_reader_init(&r);
	for (i = 0; i < 5; i++) {
		hr_report_feed(&r, one, sizeof(one));
		for (;;) {
			hr_report_next(&r, &got);
			if (got.nonce == NULL)
				break;
			n++;
		}
	}
	fault_tell("%u", n);
	hr_report_reader_done(&r);
	return 0;
}

static int
shared_files(struct hr_err *err)
{
	static const char *const prefixes[] = {"ack."};
	struct hr_statedir d;
	int fifo = -1, r;

	hr_statedir_init(&d);
	r = hr_statedir_open(&d, fault_dir(), geteuid(), getegid(), false, err);
	if (r == 0) {
		fifo = hr_statedir_fifo(&d, "ack.1", HR_STATEDIR_USER, err);
		r = fifo < 0 ? -1 : hr_statedir_put(&d, "rc", "text", 4, HR_STATEDIR_USER, err);
	}
	hr_fd_close(&fifo);
	if (d.fd >= 0) {
		hr_statedir_remove(&d, "rc");
		hr_statedir_sweep(&d, prefixes, 1);
	}
	hr_statedir_close(&d);
	return r;
}

/* What is kept is what was printed, wherever it is kept. */
static int
kept_output(struct hr_err *err)
{
	static char bytes[5000];
	const size_t total = 30 * sizeof(bytes);
	struct hr_statedir d;
	HR_CLEAN(hr_outlog_done) struct hr_outlog o = {0};
	uint64_t at = 0, last = 0;
	const char *p;
	size_t n, len;
	int r;

	hr_statedir_init(&d);
	r = hr_statedir_open(&d, fault_dir(), geteuid(), getegid(), false, err);
	if (r < 0)
		goto out;
	hr_outlog_init(&o, total, &d);
	for (n = 0; n < total; n++) {
		bytes[n % sizeof(bytes)] = (char)(n % 251);
		if (n % sizeof(bytes) == sizeof(bytes) - 1)
			hr_outlog_add(&o, bytes, sizeof(bytes));
	}
	while ((p = hr_outlog_read(&o, &at, &len)), len > 0) {
		if (at < last)
			fault_wrong("an offset went back");
		for (n = 0; n < len; n++) {
			if (p[n] != (char)((at + n) % 251))
				fault_wrong("another byte at %llu", (unsigned long long)(at + n));
		}
		last = at += len;
		fault_tell("%zu ", len);
	}
	if (at != total)
		fault_wrong("the end is missing");
out:
	hr_statedir_close(&d);
	return r;
}

const struct fault_scenario fault_scenarios[] = {{"state machine", core, FAULT_LOSSY},
    {"hook", hook_texts, 0}, {"reports", reports, FAULT_LOSSY}, {"shared files", shared_files, 0},
    {"kept output", kept_output, FAULT_LOSSY}, {NULL, NULL, 0}};
