/* Runs a back-end program and talks to it over three pipes. The program must belong to the user or
 * root, like a shared object, and is started relative to its directory's descriptor, so that the
 * checked file runs. Its output is bounded and validated. */
#include "config.h"

#include "host/program/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <json-c/json.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/text/quote.h"
#include "base/process/spawn.h"
#include "base/trust.h"
#include "host/cloud/cloud.h"
#include "proto/json.h"

#define CANCEL_MS 2000 /* ms to confirm a cancelled request */
#define LEAVE_MS 2000  /* ms to exit after its input was closed */
#define CHUNK 98304    /* maximum bytes of a file per line */
#define SAID_MAX 200   /* maximum stderr lines that are passed on */
#define SAID_LINE 1000
#define SAID_MORE 4096 /* further bytes of a long line, so that a secret is not cut */
#define SAID_READS 16  /* reads of SAID_MORE bytes at a time: the capacity of a pipe */

/* A request in progress. */
struct asked {
	struct hr_child *c;
	const struct hr_child_call *q;
	struct hr_child_end *ret;
	struct hr_buf out; /* bytes that must be written */
	size_t written;    /* bytes of `out` already written */
	size_t sent;       /* bytes of q->bytes in `out` or written before */
};

void
hr_child_init(struct hr_child *c, const char *name, const char *path, const char *const *env)
{
	*c = (struct hr_child){.name = name,
	    .path = path,
	    .env = env,
	    .patience_ms = 60000,
	    .greet_ms = 60000,
	    .to = -1,
	    .from = -1,
	    .said = -1,
	    .ended = -1};
}

/* ---- start and end ---- */

/* Kills the program with its process group. Returns its wait status. */
static int
reap(struct hr_child *c)
{
	int status = 0;

	if (c->pid > 0) {
		(void)kill(-c->pid, SIGKILL);
		(void)hr_spawn_end(c->pid, &status);
	}
	c->pid = 0;
	hr_fd_close(&c->to);
	hr_fd_close(&c->from);
	hr_fd_close(&c->said);
	hr_fd_close(&c->ended);
	hr_buf_done(&c->in);
	hr_buf_done(&c->words);
	return status;
}

void
hr_child_done(struct hr_child *c)
{
	struct pollfd p = {.fd = c->ended, .events = POLLIN};

	if (c->pid > 0) {
		hr_fd_close(&c->to);
		if (c->ended >= 0)
			(void)poll(&p, 1, LEAVE_MS);
	}
	(void)reap(c);
}

/* Reports a program that exited or closed its output before it answered. */
static int
lost(struct hr_child *c, const char *op, struct hr_err *err)
{
	struct pollfd p = {.fd = c->ended, .events = POLLIN};
	int status;

	/* a program that has closed its output gets a short time to exit */
	if (c->ended >= 0)
		(void)poll(&p, 1, LEAVE_MS);
	status = reap(c);
	return hr_err_set(err, HR_E_DISCONNECTED,
	    "it ended with status %d and did not answer \"%s\"%s%s", hr_exit_code(status), op,
	    c->last[0] != '\0' ? "; its last output: " : "", c->last);
}

static void
close_both(int pair[2])
{
	hr_fd_close(&pair[0]);
	hr_fd_close(&pair[1]);
}

static int
spawn(struct hr_child *c, struct hr_err *err)
{
	int in[2] = {-1, -1}, out[2] = {-1, -1}, said[2] = {-1, -1};
	const char *const argv[] = {c->path, NULL};
	HR_CLEAN(hr_trusted_done) struct hr_trusted t = {.fd = -1, .dir = -1};
	char path[300];
	int r;

	if (hr_trust_open(&t, c->path, HR_TRUST_NOBODY, err) != 0)
		return -1;
	if (!hr_fd_may_run(t.fd)) {
		r = hr_err_set(
		    err, HR_E_INVAL, "%.300s is not executable: \"chmod +x\" it", c->path);
	} else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0 ||
		   pipe2(out, O_CLOEXEC) != 0 || pipe2(said, O_CLOEXEC) != 0) {
		r = hr_err_sys(err, errno, "descriptors for a program");
	} else {
		const struct hr_spawn_fd fds[] = {
		    {in[1], 0}, {out[1], 1}, {said[1], 2}, {t.dir, 3}};
		const struct hr_spawn sp = {.path = path,
		    .argv = argv,
		    .envp = (char *const *)c->env,
		    .fds = fds,
		    .nfds = 4,
		    .alone = true,
		    /* there is no terminal for prompts, and only one group to kill */
		    .setsid = true,
		    .umask = -1};

		(void)snprintf(path, sizeof(path), "/proc/self/fd/3/%s", t.name);
		r = hr_fd_nonblock(in[0], true, err) == 0 &&
			    hr_fd_nonblock(out[0], true, err) == 0 &&
			    hr_fd_nonblock(said[0], true, err) == 0 &&
			    (c->pid = hr_spawn(&sp, err)) > 0
			? 0
			: -1;
	}
	if (r != 0) {
		c->pid = 0;
		close_both(in);
		close_both(out);
		close_both(said);
		return -1;
	}
	c->to = in[0];
	c->from = out[0];
	c->said = said[0];
	hr_fd_close(&in[1]);
	hr_fd_close(&out[1]);
	hr_fd_close(&said[1]);
	c->ended = hr_pidfd_open(c->pid);
	hr_buf_init(&c->in, HR_PROGRAM_LINE_MAX + 65536);
	hr_buf_init(&c->words, SAID_LINE + 3 * SAID_MORE);
	c->looked = 0;
	c->cut = false;
	c->lines = 0;
	c->last[0] = '\0';
	return 0;
}

/* ---- stderr ---- */

static void
say_line(struct hr_child *c, const char *p, size_t len)
{
	HR_BUF(plain, 3 * (SAID_LINE + 3 * SAID_MORE));
	HR_BUF(b, 4 * SAID_LINE + 200);

	hr_cloud_hide(&plain, c->secrets, p, len);
	hr_quote_text(&b, hr_buf_str(&plain), plain.len < SAID_LINE ? plain.len : SAID_LINE);
	if (b.len > 0 && hr_buf_check(&plain, NULL) == 0 && hr_buf_check(&b, NULL) == 0) {
		(void)snprintf(c->last, sizeof(c->last), "%s", b.p);
		if (c->say != NULL && c->lines < SAID_MAX)
			c->say(c->arg, b.p);
		c->lines++;
	}
}

/* Reads available data, but at most a pipe's capacity: endless output would prevent the timeout.
 * Closes the pipe at its end. */
static void
hear_words(struct hr_child *c)
{
	char piece[SAID_MORE], *end;
	ssize_t n;
	int i;

	for (i = 0; i < SAID_READS && c->said >= 0; i++) {
		n = hr_fd_read(c->said, piece, sizeof(piece));
		if (n < 0)
			return;
		if (n == 0)
			hr_fd_close(&c->said);
		hr_buf_add(&c->words, piece, (size_t)n);
		while (c->words.len > 0 && (end = memchr(c->words.p, '\n', c->words.len)) != NULL) {
			if (!c->cut)
				say_line(c, c->words.p, (size_t)(end - c->words.p));
			c->cut = false;
			hr_buf_drop_front(&c->words, (size_t)(end - c->words.p) + 1);
		}
		/* a line without an end is cut */
		if (c->words.len > SAID_LINE + SAID_MORE || (c->said < 0 && c->words.len > 0) ||
		    hr_buf_check(&c->words, NULL) != 0) {
			if (!c->cut)
				say_line(c, hr_buf_str(&c->words), c->words.len);
			c->cut = true;
			hr_buf_reset(&c->words);
		}
	}
}

/* ---- one request ---- */

/* Makes the line {"id": 3, "data": "..."} with the next bytes. */
static void
next_bytes(struct asked *a)
{
	size_t n = a->q->bytes_len - a->sent;

	n = n < CHUNK ? n : CHUNK;
	hr_buf_reset(&a->out);
	a->written = 0;
	hr_buf_addf(&a->out, "{\"id\":%lld,\"data\":\"", (long long)a->c->id);
	hr_quote_base64(&a->out, a->q->bytes + a->sent, n);
	hr_buf_adds(&a->out, "\"}\n");
	a->sent += n;
}

/* Writes as much as the pipe takes. */
static int
send_some(struct asked *a, struct hr_err *err)
{
	ssize_t n;

	if (a->written == a->out.len && a->sent < a->q->bytes_len)
		next_bytes(a);
	if (hr_buf_check(&a->out, err) != 0)
		return -1;
	while (a->written < a->out.len) {
		n = send(a->c->to, a->out.p + a->written, a->out.len - a->written,
		    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0) {
			/* the program may have answered without reading everything; its exit shows
			 * later */
			a->written = a->out.len;
			a->sent = a->q->bytes_len;
			return 0;
		}
		a->written += (size_t)n;
	}
	return 0;
}

/* Handles an answer. Returns 1 if it was the last one, 0 if more follow, or -1 if the program broke
 * the protocol. */
static int
take(struct asked *a, const struct hr_program_answer *said, struct hr_err *err)
{
	if (said->id != a->c->id)
		return hr_err_set(err, HR_E_PROTO,
		    "the program answered request %lld, but request %lld was sent",
		    (long long)said->id, (long long)a->c->id);
	switch (said->kind) {
	case HR_PROGRAM_OK: a->ret->ok = json_object_get(said->body); return 1;
	case HR_PROGRAM_ERROR:
		a->ret->told = true;
		if (err != NULL)
			*err = said->error;
		return 1;
	default:
		if (a->q->event == NULL)
			return hr_err_set(err, HR_E_PROTO,
			    "its answer to \"%s\" has an unexpected event", a->q->op);
		return a->q->event(a->q->arg, said, err);
	}
}

/* Handles the complete lines up to the last one of the request. */
static int
take_lines(struct asked *a, struct hr_err *err)
{
	struct hr_program_answer said;
	struct hr_child *c = a->c;
	int r = 0;
	char *end;

	while (r == 0 && c->in.len > c->looked &&
	       (end = memchr(c->in.p + c->looked, '\n', c->in.len - c->looked)) != NULL) {
		size_t len = (size_t)(end - c->in.p);

		r = hr_program_read(c->in.p, len, c->secrets, &said, err);
		if (r == 0)
			r = take(a, &said, err);
		hr_program_answer_done(&said);
		hr_buf_drop_front(&c->in, len + 1);
		c->looked = 0;
	}
	if (r == 0) {
		c->looked = c->in.len;
		if (c->in.len > HR_PROGRAM_LINE_MAX)
			r = hr_err_set(err, HR_E_TOOLARGE,
			    "a line of its output has more than %u bytes", HR_PROGRAM_LINE_MAX);
	}
	return r;
}

/* Reads available output. Returns 1 if there was some, 0 if not, or -1 if the pipe is closed. */
static int
hear(struct hr_child *c)
{
	char *room = hr_buf_reserve(&c->in, 32768);
	ssize_t n = room != NULL ? hr_fd_read(c->from, room, 32768) : 0;

	if (n > 0)
		hr_buf_grew(&c->in, (size_t)n);
	return n > 0 ? 1 : n < 0 && errno == EAGAIN ? 0 : -1;
}

/* Talks until the last answer (1), the time `until` (0), or the program's end (-1). */
static int
converse(struct asked *a, int64_t until, struct hr_err *err)
{
	struct hr_child *c = a->c;
	bool ended = false;
	int64_t left;
	int r;

	for (;;) {
		struct pollfd p[] = {{.fd = c->from, .events = POLLIN},
		    {.fd = c->said, .events = POLLIN}, {.fd = c->ended, .events = POLLIN},
		    {.fd = c->to, .events = POLLOUT}};
		bool more = a->written < a->out.len || a->sent < a->q->bytes_len;

		left = until - hr_now_ms();
		if (left <= 0)
			return 0;
		if (poll(p, more ? 4 : 3, left < 3600000 ? (int)left : 3600000) < 0 &&
		    errno != EINTR)
			return hr_err_sys(err, errno, "poll");
		hear_words(c);
		if (send_some(a, err) != 0)
			return -1;
		/* check for its exit first, then read its remaining output */
		ended = ended || p[2].revents != 0;
		r = hear(c);
		if (r > 0 && (r = take_lines(a, err)) != 0)
			return r;
		if (r < 0 || (ended && r == 0 && hear(c) <= 0)) {
			hear_words(c);
			return lost(c, a->q->op, err);
		}
		if (ended && (r = take_lines(a, err)) != 0)
			return r;
	}
}

/* Cancels the request, which the program may still answer. */
static int
cancel(struct asked *a, struct hr_err *err)
{
	int r;

	a->ret->late = true;
	/* finishes the line that was partly written */
	a->sent = a->q->bytes_len;
	hr_buf_addf(&a->out, "{\"cancel\":%lld}\n", (long long)a->c->id);
	r = hr_buf_check(&a->out, err) == 0 ? converse(a, hr_now_ms() + CANCEL_MS, err) : -1;
	return r != 0 ? r
		      : hr_err_set(err, HR_E_TIMEOUT,
			    "it did not answer \"%s\" within %u ms, and "
			    "did not give it up",
			    a->q->op, a->q->timeout_ms);
}

static int
request(struct asked *a, struct hr_err *err)
{
	HR_PUT struct json_object *o = hr_json_object(err, "id", json_object_new_int64(++a->c->id),
	    "op", json_object_new_string(a->q->op), NULL);
	int r = o != NULL ? 0 : -1;

	if (r == 0 && a->q->args != NULL) {
		json_object_object_foreach(a->q->args, key, v)
		{
			if (json_object_object_add(o, key, json_object_get(v)) != 0)
				r = hr_err_nomem(err);
		}
	}
	if (r == 0 && hr_json_put(&a->out, o) != 0)
		r = hr_err_set(err, HR_E_INVAL, "the request is not UTF-8");
	if (r == 0 && a->out.len > HR_PROGRAM_LINE_MAX)
		r = hr_err_set(err, HR_E_TOOLARGE,
		    "the request \"%s\" is longer than a line may be (%u bytes)", a->q->op,
		    HR_PROGRAM_LINE_MAX);
	hr_buf_addc(&a->out, '\n');
	return r == 0 ? hr_buf_check(&a->out, err) : -1;
}

/* Sends a request to the running program. */
static int
exchange(
    struct hr_child *c, const struct hr_child_call *q, struct hr_child_end *ret, struct hr_err *err)
{
	struct asked a = {.c = c, .q = q, .ret = ret};
	struct hr_err mine = {0};
	int r;

	*ret = (struct hr_child_end){0};
	hr_buf_init(&a.out, HR_PROGRAM_LINE_MAX + 65536);
	if (request(&a, &mine) != 0) {
		ret->told = true; /* nothing was sent */
		r = -1;
	} else {
		r = converse(
		    &a, q->timeout_ms > 0 ? hr_now_ms() + q->timeout_ms : INT64_MAX, &mine);
		if (r == 0)
			r = cancel(&a, &mine);
		/* the program cannot be used again: its later lines could not be attributed to a
		 * request, or it would take the next request for the rest of this one */
		if (r < 0 || a.written < a.out.len || a.sent < q->bytes_len)
			(void)reap(c);
	}
	hr_buf_done(&a.out);
	if (r > 0 && ret->told)
		r = -1;
	if (r >= 0)
		return 0;
	hr_json_drop(&ret->ok);
	hr_err_prefix(&mine, "back-end %s", c->name);
	return hr_err_pass(err, &mine);
}

/* ---- requests with start ---- */

static int
greet(struct hr_child *c, struct hr_err *err)
{
	struct json_object *args = hr_json_object(err, "protocol",
	    json_object_new_int(HR_PROGRAM_PROTOCOL), "handrail",
	    json_object_new_string(PACKAGE_VERSION), "name", json_object_new_string(c->name), NULL);
	struct hr_child_call q = {.op = "hello", .args = args, .timeout_ms = c->greet_ms};
	struct hr_child_end end = {0};
	int r = args != NULL ? exchange(c, &q, &end, err) : -1;

	if (r == 0 && (r = hr_program_hello(end.ok, &c->about, err)) != 0)
		hr_err_prefix(err, "back-end %s", c->name);
	json_object_put(end.ok);
	json_object_put(args);
	if (r != 0 || c->opening == NULL)
		return r;
	q = (struct hr_child_call){.op = "open", .args = c->opening, .timeout_ms = c->greet_ms};
	r = exchange(c, &q, &end, err);
	json_object_put(end.ok);
	if (r == 0 && c->pid == 0)
		r = hr_err_set(err, HR_E_PROTO,
		    "back-end %s: it answered \"open\" before it had read it", c->name);
	return r;
}

int
hr_child_start(struct hr_child *c, struct hr_err *err)
{
	struct hr_err mine = {0};
	siginfo_t si = {0};

	if (c->pid > 0 && waitid(P_PID, (id_t)c->pid, &si, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	    si.si_pid == c->pid) {
		hear_words(c); /* the program exited while it was idle */
		(void)reap(c);
	}
	if (c->pid > 0)
		return 0;
	if (spawn(c, err) != 0)
		return hr_err_prefix(err, "back-end %s", c->name);
	if (greet(c, &mine) == 0)
		return 0;
	(void)reap(c);
	/* no sandbox or file was requested yet, so the error must not look as if one were gone */
	if (mine.code == HR_E_NOTFOUND || mine.code == HR_E_NO_SANDBOX ||
	    mine.code == HR_E_RUNTIME || mine.code == HR_E_INVAL)
		mine.code = HR_E_UNAVAILABLE;
	return hr_err_pass(err, &mine);
}

int
hr_child_ask(
    struct hr_child *c, const struct hr_child_call *q, struct hr_child_end *ret, struct hr_err *err)
{
	*ret = (struct hr_child_end){.told = true};
	return hr_child_start(c, err) == 0 ? exchange(c, q, ret, err) : -1;
}
