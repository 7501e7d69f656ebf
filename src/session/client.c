/* Handles connections: one frame in, one frame out, and more if requested. RUN requests wait in
 * order of arrival; STATUS is answered at once. A peer that leaves does not end its command. */
#include "config.h"

#include "session/keeper_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/flush.h"
#include "base/log.h"
#include "proto/frame.h"

/* room for a command of 64 MB and its fields; the worker's limit on a body is lower */
#define IN_CAP (80u << 20)
#define OUT_CAP (HR_FRAME_MAX + HR_FRAME_HEADER)
#define ACCEPT_PAUSE_MS 100
/* maximum of connections that stay, since each is examined in every iteration */
#define STAYING_MAX 8
#define IN_KEPT (64u << 10) /* memory of a request that is kept for the next one */

static void
client_free(struct client *c)
{
	TAILQ_REMOVE(&c->keeper->clients, c, link);
	if (c->stays)
		c->keeper->nstaying--;
	hr_watch_free(c->readable);
	hr_watch_free(c->writable);
	hr_fd_close(&c->fd);
	hr_buf_done(&c->in);
	hr_buf_done(&c->out);
	free(c);
}

void
client_free_all(struct hr_keeper *k)
{
	struct client *c;
	size_t i;

	hr_watch_drop(&k->listener);
	hr_watch_drop(&k->accept_again);
	while ((c = TAILQ_FIRST(&k->clients)) != NULL)
		client_free(c);
	for (i = 0; i < CACHED_RESULTS; i++) {
		free(k->cached[i].key);
		hr_buf_done(&k->cached[i].out);
	}
}

/* Ends the exchange: the answer was sent, or no client waits for it. */
static void
client_over(struct client *c)
{
	struct hr_keeper *k = c->keeper;

	client_free(c);
	if (k->config->is_static)
		keeper_stop(k);
}

static void on_client_readable(void *arg);
static void on_client_writable(void *arg);
static void answer(struct client *c);

/* ---- at most once ----
 *
 * A worker may die during a request; nginx then sends the same request, with the same key, to
 * another one. While the first is waiting or running the second joins it. The last results are kept
 * for it: a result may have died with the worker before it was in the journal. */

static bool
same_key(const struct client *a, const struct client *b)
{
	return a->key_len > 0 && a->key_len == b->key_len &&
	       memcmp(a->key, b->key, a->key_len) == 0;
}

/* Returns true if another request with this key answers, or has answered, for both. */
static bool
client_join(struct client *c)
{
	struct hr_keeper *k = c->keeper;
	struct client *other;
	size_t i;

	TAILQ_FOREACH(other, &k->clients, link)
	{
		if (other != c && (other->queued || other == k->active) && same_key(other, c)) {
			c->joined = true;
			if (other->attempt < c->attempt)
				other->attempt = c->attempt;
			return true;
		}
	}
	for (i = 0; i < CACHED_RESULTS; i++) {
		if (k->cached[i].key_len != c->key_len || c->key_len == 0 ||
		    memcmp(k->cached[i].key, c->key, c->key_len) != 0)
			continue;
		hr_buf_done(&c->out);
		c->out = k->cached[i].out;
		free(k->cached[i].key);
		memset(&k->cached[i], 0, sizeof(k->cached[i]));
		c->has_result = true; /* the answer may get lost again */
		answer(c);
		return true;
	}
	return false;
}

/* Sends the result of c to the requests that joined it. */
static void
client_share(const struct client *c)
{
	struct client *other, *next;

	for (other = TAILQ_FIRST(&c->keeper->clients); other != NULL; other = next) {
		next = TAILQ_NEXT(other, link);
		if (!other->joined || !same_key(other, c))
			continue;
		other->joined = false;
		hr_buf_add(&other->out, hr_buf_str(&c->out), c->out.len);
		if (c->out.fail != HR_OK)
			other->out.fail = c->out.fail; /* an incomplete result is useless */
		other->has_result = true;
		answer(other);
	}
}

void
client_take_result(struct hr_keeper *k, const char *key, size_t key_len, const char *p, size_t len)
{
	struct cached_result *l = &k->cached[k->cached_next];

	if (key_len == 0 || len == 0 || (l->key = malloc(key_len)) == NULL)
		return;
	memcpy(l->key, key, key_len);
	l->key_len = key_len;
	hr_buf_init(&l->out, OUT_CAP);
	hr_buf_add(&l->out, p, len);
	k->cached_next = (k->cached_next + 1) % CACHED_RESULTS;
}

/* Restores a request without a connection; repetitions join it. */
int
client_resume(
    struct hr_keeper *k, const char *key, size_t len, uint32_t attempt, struct hr_err *err)
{
	struct client *c = calloc(1, sizeof(*c));

	if (c == NULL)
		return hr_err_nomem(err);
	c->keeper = k;
	c->fd = -1;
	hr_buf_init(&c->in, IN_CAP);
	hr_buf_init(&c->out, OUT_CAP);
	hr_buf_add(&c->in, key, len);
	c->key = hr_buf_str(&c->in);
	c->key_len = c->in.len;
	c->attempt = attempt;
	TAILQ_INSERT_HEAD(&k->clients, c, link);
	k->active = c;
	return hr_buf_check(&c->in, err);
}

/* Keeps the result. Without memory for it a repetition is answered that the result is lost. */
static void
client_keep_result(struct client *c)
{
	struct hr_keeper *k = c->keeper;
	struct cached_result *l = &k->cached[k->cached_next];

	if (c->key_len == 0 || c->out.len > CACHED_MAX || k->config->is_static)
		return;
	k->cached_next = (k->cached_next + 1) % CACHED_RESULTS;
	free(l->key);
	hr_buf_done(&l->out);
	l->key_len = 0;
	l->key = malloc(c->key_len);
	if (l->key == NULL) {
		hr_log(HR_LOG_ERROR, "a result is lost: out of memory");
		return;
	}
	memcpy(l->key, c->key, c->key_len);
	l->key_len = c->key_len;
	l->out = c->out;
	hr_buf_init(&c->out, 0);
}

/* ---- connections that stay ---- */

/* Makes a late request fail: a worker may send its next request as soon as it has an answer. If the
 * keeper would not read that, sending must fail, so that the worker knows that nothing was done. */
static void
client_settle(struct client *c)
{
	struct hr_keeper *k = c->keeper;

	if (!c->asks_to_stay || c->stays || k->config->is_static)
		return;
	if (k->nstaying < STAYING_MAX) {
		c->stays = true;
		k->nstaying++;
	} else {
		(void)shutdown(c->fd, SHUT_RD); /* fails if the peer has gone */
	}
}

static void
client_unsettle(struct client *c)
{
	if (c->stays)
		c->keeper->nstaying--;
	c->stays = false;
}

/* Makes the connection as if just accepted, after all of the answer was sent. */
static void
client_rest(struct client *c)
{
	struct hr_err err = {0};

	hr_watch_drop(&c->writable);
	c->key = NULL;
	c->key_len = c->sent = 0;
	c->attempt = 0;
	c->has_result = false;
	hr_buf_done(&c->out);
	hr_buf_init(&c->out, OUT_CAP);
	if (c->in.room > IN_KEPT)
		hr_buf_done(&c->in);
	hr_buf_reset(&c->in);
	if (c->readable == NULL)
		c->readable = hr_loop_readable(c->keeper->loop, c->fd, on_client_readable, c, &err);
	if (c->readable == NULL) {
		hr_log(HR_LOG_ERROR, "connection closed: %s", err.msg);
		client_over(c);
	}
}

static void
client_send(struct client *c)
{
	struct hr_err err = {0};
	int r = hr_flush(c->fd, &c->out, &c->sent);

	if (r == 0 && c->writable == NULL)
		c->writable = hr_loop_writable(c->keeper->loop, c->fd, on_client_writable, c, &err);
	if (r == 0 && c->writable != NULL)
		return;
	if (c->has_result)
		client_keep_result(c);
	if (r > 0 && c->stays)
		client_rest(c);
	else
		client_over(c);
}

static void
on_client_writable(void *arg)
{
	client_send(arg);
}

static void
answer(struct client *c)
{
	struct hr_err err = {0};

	c->queued = false;
	if (hr_buf_check(&c->out, &err) < 0) {
		hr_log(HR_LOG_ERROR, "answer lost: %s", err.msg);
		client_over(c);
		return;
	}
	client_settle(c);
	client_send(c);
}

void
client_result(struct hr_keeper *k, const struct hr_run_result *r)
{
	struct client *c = k->active;
	const struct hr_command_state *s =
	    hr_commands_completed(&k->kept->commands, (struct hr_span){c->key, c->key_len});
	struct hr_run_result result = *r;

	k->active = NULL;
	if (s != NULL) {
		result.id = s->id;
		result.log_start = s->log_start;
		result.log_end = s->log_end;
	}
	hr_frame_put_result(&c->out, &result);
	c->has_result = true;
	resume_note_result(k, c);
	client_share(c);
	answer(c);
}

/* ---- reading ---- */

static void
answer_state(struct client *c, bool pressed, const char *refused)
{
	struct hr_keeper *k = c->keeper;
	const char *held = pressed ? NULL : look_held(k); /* the PRESS was done or refused */
	const char *dir = claims_place(k);
	const char *why = refused != NULL      ? refused
			  : k->failure != NULL ? k->failure
			  : !k->is_ready       ? "the shell has not shown its first prompt"
			  : held != NULL       ? held
					       : "";
	unsigned rows, columns;
	struct hr_session_state state = {
	    .ready = k->is_ready && k->failure == NULL && held == NULL,
	    .running = hr_core_running(k->core),
	    .working_dir = {dir, strlen(dir)},
	    .reason = {why, strlen(why)},
	    .log_start = hr_outlog_start(&k->kept->outlog),
	    .log_end = k->kept->outlog.end,
	};

	hr_shellproc_size(&k->shell, &rows, &columns);
	state.rows = rows;
	state.columns = columns;
	hr_frame_put_state(&c->out, &state);
	answer(c);
}

static void
answer_commands(struct client *c)
{
	/* static, since there is one loop and one thread */
	static struct hr_command_state list[HR_COMMANDS_MAX];
	const struct hr_keeper *k = c->keeper;
	size_t n = hr_commands_list(
	    &k->kept->commands, hr_now_ms(), k->printed_at, k->kept->outlog.end, list);

	hr_frame_put_list(&c->out, list, n);
	answer(c);
}

void
client_next(struct hr_keeper *k)
{
	struct hr_run_request run;
	struct client *c;
	const char *payload;
	size_t len, used, need;
	uint32_t type;

	while (k->is_ready && k->active == NULL && !hr_core_busy(k->core) && !k->stopping) {
		TAILQ_FOREACH(c, &k->clients, link)
		{
			if (c->queued)
				break;
		}
		if (c == NULL)
			return;
		c->queued = false;
		if (hr_frame_get(c->in.p, c->in.len, &type, &payload, &len, &used, &need, NULL) !=
			1 ||
		    hr_frame_get_run(payload, len, &run, NULL) < 0) {
			client_over(c);
			continue;
		}
		/* A later attempt follows, or was made elsewhere. */
		if (!hr_journal_begin(&k->journal, c->key, c->key_len, c->attempt)) {
			client_over(c);
			continue;
		}
		k->active = c;
		keeper_request(k, &run);
	}
}

/* Dispatches the whole frame in c->in. */
static void
client_dispatch(struct client *c, uint32_t type, const char *payload, size_t len)
{
	struct hr_keeper *k = c->keeper;
	struct hr_follow_request follow;
	struct hr_press_request press;
	struct hr_exec_request exec;
	struct hr_run_request run;

	switch (type) {
	case HR_FRAME_STATUS: answer_state(c, false, NULL); return;
	case HR_FRAME_COMMANDS: answer_commands(c); return;
	case HR_FRAME_FOLLOW:
		if (hr_frame_get_follow(payload, len, &follow, NULL) < 0)
			break;
		follow_add(k, c->fd, &follow);
		c->fd = -1;
		client_over(c);
		return;
	case HR_FRAME_EXEC:
		if (hr_frame_get_exec(payload, len, &exec, NULL) < 0)
			break;
		exec_add(k, c->fd, &exec);
		c->fd = -1;
		client_over(c);
		return;
	case HR_FRAME_RETURNED:
		if (hr_frame_get_follow(payload, len, &follow, NULL) < 0)
			break;
		/* an offset in the future would hide output of later commands */
		if (follow.offset > k->kept->outlog.end)
			follow.offset = k->kept->outlog.end;
		if (follow.offset > k->kept->returned)
			k->kept->returned = follow.offset;
		answer_state(c, true, NULL);
		return;
	case HR_FRAME_PRESS:
		if (hr_frame_get_press(payload, len, &press, NULL) < 0)
			break;
		answer_state(c, true, follow_press(k, &press));
		return;
	case HR_FRAME_RUN:
		if (hr_frame_get_run(payload, len, &run, NULL) < 0)
			break;
		/* Only the peer's end could still arrive, and the answer's failure shows that. */
		hr_watch_drop(&c->readable);
		c->key = run.key.p;
		c->key_len = run.key.len;
		c->attempt = run.attempt;
		client_unsettle(c);
		c->asks_to_stay = run.stays;
		TAILQ_REMOVE(&k->clients, c, link);
		TAILQ_INSERT_TAIL(&k->clients, c, link);
		if (client_join(c))
			return;
		if (run.again) {
			hr_frame_put_empty(&c->out, HR_FRAME_UNKNOWN);
			answer(c);
			return;
		}
		c->queued = true;
		keeper_arm(k);
		return;
	default: break;
	}
	hr_log(HR_LOG_WARNING, "connection closed: the client speaks another protocol");
	client_over(c);
}

/* Returns true if the rest of the request is still to come; otherwise c may be freed. */
static bool
client_read(struct client *c)
{
	struct hr_err err = {0};
	const char *payload;
	size_t len, used, need;
	uint32_t type;
	ssize_t n;
	char *room;
	int found;

	room = hr_buf_reserve(&c->in, 16384);
	if (room == NULL) {
		client_over(c);
		return false;
	}
	n = hr_fd_read(c->fd, room, 16384);
	if (n < 0 && errno == EAGAIN)
		return true;
	if (n <= 0) {
		client_over(c);
		return false;
	}
	hr_buf_grew(&c->in, (size_t)n);
	found = hr_frame_get(c->in.p, c->in.len, &type, &payload, &len, &used, &need, &err);
	if (found == 1) {
		client_dispatch(c, type, payload, len);
	} else if (found < 0) {
		hr_log(HR_LOG_WARNING, "connection closed: %s", err.msg);
		client_over(c);
	}
	return found == 0;
}

static void
on_client_readable(void *arg)
{
	struct client *c = arg;
	struct hr_keeper *k = c->keeper;

	(void)client_read(c); /* the watch stays if more data is to come */
	keeper_arm(k);
}

int
client_add(struct hr_keeper *k, int fd, struct hr_err *err)
{
	struct client *c = calloc(1, sizeof(*c));

	if (c == NULL) {
		hr_fd_close(&fd);
		return hr_err_nomem(err);
	}
	c->keeper = k;
	c->fd = fd;
	hr_buf_init(&c->in, IN_CAP);
	hr_buf_init(&c->out, OUT_CAP);
	TAILQ_INSERT_TAIL(&k->clients, c, link);
	/* accepted connections are non-blocking from the start */
	if (k->config->is_static && hr_fd_nonblock(fd, true, err) < 0) {
		client_free(c);
		return -1;
	}
	/* The request is nearly always there already, and then needs no watch. */
	if (!client_read(c))
		return 0;
	c->readable = hr_loop_readable(k->loop, fd, on_client_readable, c, err);
	if (c->readable == NULL) {
		client_free(c);
		return -1;
	}
	return 0;
}

/* Stops accepting: without a free descriptor or memory the waiting connection would wake the loop
 * again and again. */
static void
pause_accepting(struct hr_keeper *k)
{
	struct hr_err err = {0};

	if (hr_watch_arm(k->accept_again, ACCEPT_PAUSE_MS, &err) < 0)
		return;
	hr_watch_drop(&k->listener);
}

static void
on_listener(void *arg)
{
	struct hr_keeper *k = arg;
	struct hr_err err = {0};
	int fd;

	/* One per iteration is enough: there is seldom another. */
	fd = accept4(k->config->serve_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		if (client_add(k, fd, &err) < 0)
			hr_log(HR_LOG_ERROR, "connection refused: %s", err.msg);
	} else if (errno != EINTR && errno != ECONNABORTED && errno != EAGAIN) {
		hr_log(HR_LOG_ERROR, "cannot accept a connection: %s", strerror(errno));
		pause_accepting(k);
	}
	keeper_arm(k);
}

static void
on_accept_again(void *arg)
{
	struct hr_keeper *k = arg;
	struct hr_err err = {0};

	k->listener = hr_loop_readable(k->loop, k->config->serve_fd, on_listener, k, &err);
	if (k->listener == NULL && hr_watch_arm(k->accept_again, ACCEPT_PAUSE_MS, NULL) < 0)
		hr_log(HR_LOG_ERROR, "cannot accept connections any more: %s", err.msg);
}

int
client_listen(struct hr_keeper *k, struct hr_err *err)
{
	if (hr_fd_nonblock(k->config->serve_fd, true, err) < 0)
		return -1;
	k->accept_again = hr_loop_timer(k->loop, on_accept_again, k, err);
	if (k->accept_again == NULL)
		return -1;
	k->listener = hr_loop_readable(k->loop, k->config->serve_fd, on_listener, k, err);
	return k->listener != NULL ? 0 : -1;
}
