/* Actions are performed one at a time, in the order in which they came. While one waits for
 * Chromium, the same loop takes others from workers, and answers those whose time is over. */
#include "config.h"

#include "plugins/browser/serve.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "proto/frame.h"
#include "proto/json.h"

#define CLIENTS_MAX 512 /* as many as there may be workers, and more */
#define READ_STEP (64u << 10)
#define READS_A_TURN 16

struct serve;

/* A worker and its action. */
struct client {
	TAILQ_ENTRY(client) entry;
	struct serve *s;
	int fd; /* -1: it has gone */
	struct hr_watch *watch, *late;
	struct hr_buf in, out;
	size_t sent;
	char type[24];
	struct json_object *action; /* NULL: not all of it is there */
	bool running, answered;
};

struct serve {
	struct browser *b;
	struct br_desk *d;
	struct hr_loop *loop;
	int listener;
	struct hr_watch *accepting, *term;
	bool ending;
	TAILQ_HEAD(, client) clients; /* in the order of their coming */
	size_t nclients;
};

static void
hang_up(struct client *c)
{
	hr_watch_free(c->watch);
	hr_watch_free(c->late);
	c->watch = c->late = NULL;
	hr_fd_close(&c->fd);
	hr_buf_done(&c->in);
	hr_buf_done(&c->out);
	hr_loop_stop(c->s->loop);
}

static void
client_free(struct client *c)
{
	struct serve *s = c->s;

	hang_up(c);
	json_object_put(c->action);
	TAILQ_REMOVE(&s->clients, c, entry);
	s->nclients--;
	free(c);
}

static void on_client(void *arg);

static void
on_sendable(void *arg)
{
	struct client *c = arg;
	ssize_t n =
	    send(c->fd, c->out.p + c->sent, c->out.len - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		c->sent += (size_t)n;
	if (n < 0 || c->sent == c->out.len)
		hang_up(c);
}

static void
answer(struct client *c, const struct br_reply *reply)
{
	struct hr_act_answer a = {.status = reply->status};
	struct hr_err err = {0};

	if (c->answered || c->fd < 0)
		return;
	c->answered = true;
	a.body = (struct hr_span){hr_buf_str(&reply->body), reply->body.len};
	hr_buf_init(&c->out, HR_FRAME_MAX + HR_FRAME_HEADER);
	if (hr_buf_check(&reply->body, &err) == 0) {
		hr_frame_put_answer(&c->out, &a);
		(void)hr_buf_check(&c->out, &err);
	}
	hr_watch_free(c->watch);
	c->watch = NULL;
	if (err.code == HR_OK)
		c->watch = hr_loop_writable(c->s->loop, c->fd, on_sendable, c, &err);
	if (c->watch == NULL) {
		hr_log(HR_LOG_ERROR, "an action cannot be answered: %s", err.msg);
		hang_up(c);
	}
}

static void
on_late(void *arg)
{
	struct client *c = arg;
	struct br_reply reply;

	br_step_late(c->type, c->action, &reply);
	answer(c, &reply);
	hr_buf_done(&reply.body);
}

static int
take_request(struct client *c, struct hr_err *err)
{
	struct hr_act_request req;
	struct hr_json_error error;
	const char *payload = NULL;
	size_t len = 0, used, need;
	uint32_t type = 0;
	int r = hr_frame_get(c->in.p, c->in.len, &type, &payload, &len, &used, &need, err);

	if (r <= 0)
		return r;
	if (type != HR_FRAME_ACT)
		return hr_err_set(err, HR_E_PROTO, "a frame of type %u", type);
	if (hr_frame_get_act(payload, len, &req, err) != 0)
		return -1;
	if (req.type.len >= sizeof(c->type))
		return hr_err_set(err, HR_E_PROTO, "an action of another type");
	memcpy(c->type, req.type.p, req.type.len);
	c->type[req.type.len] = '\0';
	if (strcmp(c->type, "browse") != 0 && strcmp(c->type, "browse_interactive") != 0)
		return hr_err_set(err, HR_E_PROTO, "an action of another type");
	if (hr_json_decode(req.action.p, req.action.len, &c->action, &error) != 0 ||
	    c->action == NULL)
		return hr_err_set(err, HR_E_PROTO, "the action is not JSON");
	hr_buf_done(&c->in);
	c->late = hr_loop_timer(c->s->loop, on_late, c, err);
	if (c->late == NULL || hr_watch_arm(c->late, BR_STEP_MS, err) != 0)
		return -1;
	hr_loop_stop(c->s->loop);
	return 0;
}

static int
read_request(struct client *c, struct hr_err *err)
{
	int i;

	for (i = 0; i < READS_A_TURN && c->action == NULL; i++) {
		char *p = hr_buf_reserve(&c->in, READ_STEP);
		ssize_t n;

		if (p == NULL)
			return hr_buf_check(&c->in, err);
		n = hr_fd_read(c->fd, p, READ_STEP);
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0)
			return hr_err_set(err, HR_E_GONE, "a worker went away");
		hr_buf_grew(&c->in, (size_t)n);
		if (take_request(c, err) != 0)
			return -1;
	}
	return 0;
}

/* A worker that goes, or says something after its request, is not answered; its action is done all
 * the same if it was begun. */
static void
on_client(void *arg)
{
	struct client *c = arg;
	struct hr_err err = {0};

	if (c->action == NULL && read_request(c, &err) == 0)
		return;
	if (err.code != HR_OK && err.code != HR_E_GONE)
		hr_log(HR_LOG_WARNING, "a request cannot be read: %s", err.msg);
	hang_up(c);
}

static void
on_accept(void *arg)
{
	struct serve *s = arg;
	int fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct client *c;
	struct hr_err err = {0};

	if (fd < 0)
		return;
	c = s->nclients < CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;
	if (c == NULL) {
		hr_log(HR_LOG_WARNING, "too many actions wait for the browser");
		hr_fd_close(&fd);
		return;
	}
	c->s = s;
	c->fd = fd;
	hr_buf_init(&c->in, HR_FRAME_MAX + HR_FRAME_HEADER + READ_STEP);
	hr_buf_init(&c->out, HR_FRAME_MAX + HR_FRAME_HEADER);
	TAILQ_INSERT_TAIL(&s->clients, c, entry);
	s->nclients++;
	c->watch = hr_loop_readable(s->loop, fd, on_client, c, &err);
	if (c->watch == NULL) {
		hr_log(HR_LOG_WARNING, "a worker cannot be heard: %s", err.msg);
		hang_up(c);
	}
}

static void
on_term(void *arg)
{
	struct serve *s = arg;

	s->ending = true;
	hr_loop_stop(s->loop);
}

static bool
is_ending(void *arg)
{
	const struct serve *s = arg;

	return s->ending;
}

/* The next action whose worker still waits; frees those that are over. */
static struct client *
next(struct serve *s)
{
	struct client *c = TAILQ_FIRST(&s->clients);

	while (c != NULL) {
		struct client *then = TAILQ_NEXT(c, entry);

		if (c->fd < 0)
			client_free(c);
		else if (c->action != NULL && !c->answered)
			return c;
		c = then;
	}
	return NULL;
}

static void
perform(struct serve *s, struct client *c)
{
	struct br_reply reply;

	c->running = true;
	br_step(s->b, s->d, c->type, c->action, &reply);
	c->running = false;
	if (!s->ending)
		answer(c, &reply);
	hr_buf_done(&reply.body);
	(void)malloc_trim(0);
}

int
br_serve(struct browser *b, struct br_desk *d, int listener, struct hr_err *err)
{
	struct serve s = {.b = b, .d = d, .loop = b->loop, .listener = listener};
	struct client *c;
	int r = 0;

	TAILQ_INIT(&s.clients);
	b->interrupted = is_ending;
	b->arg = &s;
	s.accepting = hr_loop_readable(s.loop, listener, on_accept, &s, err);
	s.term = hr_loop_signal(s.loop, SIGTERM, on_term, &s, err);
	if (s.accepting == NULL || s.term == NULL)
		r = -1;
	while (r == 0 && !s.ending) {
		c = next(&s);
		if (c != NULL)
			perform(&s, c);
		else
			r = hr_loop_run(s.loop, err);
	}
	while ((c = TAILQ_FIRST(&s.clients)) != NULL)
		client_free(c);
	hr_watch_free(s.accepting);
	hr_watch_free(s.term);
	return r;
}
