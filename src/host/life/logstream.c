/* Follows a log. The thread has its own handle of the sandbox, because only one thread may use an
 * object at a time; it waits for the log and for a descriptor that asks it to end. */
#include "config.h"

#include "host/life/logstream.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>

#include "base/fd.h"
#include "base/text/quote.h"
#include "base/err.h"
#include "host/common/proc.h"
#include "host/mask.h"
#include "host/report.h"

#define LINE_MAX_BYTES (4u << 20)

struct hr_log_stream {
	const struct hr_sandbox_ops *ops;
	void *self;
	struct hr_backend_host host;
	hr_line_fn *fn;
	void *arg;
	/* the caller's function, called with constant strings or the system's, without secrets */
	hr_warn_fn *log;
	void *log_arg;
	pthread_t thread;
	bool started;
};

static void
free_stream(struct hr_log_stream *t)
{
	if (t == NULL)
		return;
	if (t->self != NULL)
		t->ops->free(t->self);
	hr_fd_close(&t->host.stop_fd);
	free(t);
}

static void
log_nothing(void *arg, const char *text)
{
	(void)arg;
	(void)text;
}

static void
no_status(void *arg, const char *status)
{
	(void)arg;
	(void)status;
}

static void *
follow(void *arg)
{
	struct hr_log_stream *t = arg;
	struct hr_err e = {0};
	char text[sizeof(e.msg) + 64];

	if (t->ops->logs(t->self, true, t->fn, t->arg, &e) != 0 && t->log != NULL) {
		(void)snprintf(text, sizeof(text), "Error streaming the log: %s", e.msg);
		t->log(t->log_arg, text);
	}
	return NULL;
}

/* Opens the same sandbox for the thread. */
static int
open_again(struct hr_log_stream *t, struct hr_sandbox *s, struct hr_err *err)
{
	HR_FREE char *record = s->ops->record(s->self, err);
	int r = -1;

	if (record == NULL)
		return -1;
	t->host = s->host;
	t->host.attach = true;
	t->host.log = log_nothing;
	t->host.status = no_status;
	t->host.output = NULL;
	t->host.progress = NULL;
	t->host.stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (t->host.stop_fd < 0)
		(void)hr_err_sys(err, errno, "eventfd");
	else if (t->ops->open(&t->host, &t->self, err) == 0)
		r = t->ops->restore(t->self, record, err);
	if (r == 0 && t->ops->state != NULL && strcmp(t->ops->state(t->self), "gone") == 0)
		r = hr_err_set(err, HR_E_NO_SANDBOX, "sandbox \"%s\" has ended", s->sid);
	return r;
}

int
hr_sandbox_start_log_stream(struct hr_sandbox *s, hr_line_fn *fn, void *arg, struct hr_err *err)
{
	struct hr_log_stream *t;

	if (!s->connected)
		return hr_err_set(err, HR_E_RUNTIME, "the sandbox is not connected");
	if (s->ops->logs == NULL || s->ops->record == NULL || s->ops->restore == NULL)
		return hr_err_set(
		    err, HR_E_RUNTIME, "%s runtime does not support logs", s->ops->name);
	hr_sandbox_stop_log_stream(s);
	t = calloc(1, sizeof(*t));
	if (t == NULL)
		return hr_err_nomem(err);
	t->ops = s->ops;
	t->host.stop_fd = -1;
	t->fn = fn;
	t->arg = arg;
	t->log = s->log;
	t->log_arg = s->log_arg;
	if (open_again(t, s, err) != 0 || hr_thread_start(&t->thread, follow, t, err) != 0) {
		free_stream(t);
		return -1;
	}
	t->started = true;
	s->stream = t;
	return 0;
}

void
hr_sandbox_stop_log_stream(struct hr_sandbox *s)
{
	struct hr_log_stream *t = s->stream;

	if (t == NULL)
		return;
	s->stream = NULL;
	/* the write cannot fail: the counter is far from its limit */
	(void)eventfd_write(t->host.stop_fd, 1);
	if (t->started)
		(void)pthread_join(t->thread, NULL);
	free_stream(t);
}

/* ---- DEBUG_RUNTIME ---- */

static int
on_debug_line(void *arg, const char *line, size_t len)
{
	struct hr_sandbox *s = arg;
	HR_BUF(b, LINE_MAX_BYTES);
	HR_BUF(masked, 2 * LINE_MAX_BYTES);

	while (len > 0 && strchr(" \t\r\n\v\f", line[len - 1]) != NULL)
		len--;
	if (len == 0)
		return 0;
	hr_buf_adds(&b, s->ops->log_prefix);
	/* comes before quoting, which could change the look of a secret */
	hr_mask_add(s, &masked, line, len);
	hr_quote_text(&b, hr_buf_str(&masked), masked.len);
	s->log(s->log_arg, hr_buf_str(&b));
	return 0;
}

static bool
is_wanted(const struct hr_sandbox *s)
{
	const char *v = hr_env_get(hr_strv_list(&s->environ), "DEBUG_RUNTIME");

	return v != NULL &&
	       (strcasecmp(v, "true") == 0 || strcasecmp(v, "yes") == 0 || strcmp(v, "1") == 0);
}

void
hr_logstream_debug(struct hr_sandbox *s)
{
	struct hr_err e = {0};

	if (s->log == NULL || s->attach || s->ops->log_prefix == NULL || !is_wanted(s))
		return;
	if (hr_sandbox_start_log_stream(s, on_debug_line, s, &e) < 0)
		hr_sandbox_log(s, "Failed to initialize log streaming: %s", e.msg);
}
