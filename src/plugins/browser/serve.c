/* Performs actions one at a time, in order of arrival. While one waits for Chromium, the same loop
 * accepts others from workers, answers those that time out, and updates the viewers. */
#include "config.h"

#include "plugins/browser/serve.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/flush.h"
#include "base/log.h"
#include "plugins/browser/cast.h"
#include "proto/actin.h"
#include "proto/frame.h"
#include "proto/json.h"
#include "proto/python/repr.h"

#define CLIENTS_MAX 512 /* maximum connections; there are always fewer workers */
#define PICTURE_MS 2000 /* ms for the first picture, if a viewer asks for only one */
#define STATE_MAX (1u << 20)

struct serve;

/* A worker with its action, or a viewer. */
struct client {
	TAILQ_ENTRY(client) entry;
	struct serve *s;
	int fd; /* -1: closed */
	struct hr_watch *watch, *late;
	struct hr_buf in, out;
	size_t sent;
	char type[24];
	struct json_object *action; /* NULL: not complete yet */
	bool answered;
	/* looks: the client is a viewer; once: of a single picture */
	bool looks, once;
	/* numbers of the state and the picture last sent to it */
	uint64_t seen_state, seen_picture;
};

struct serve {
	struct browser *b;
	struct br_desk *d;
	struct hr_loop *loop;
	int listener;
	struct hr_watch *accepting, *term;
	bool ending;
	TAILQ_HEAD(, client) clients; /* sorted by arrival */
	size_t nclients, nlooking;
	bool busy;           /* an action is running */
	struct hr_buf state; /* JSON of the tabs, for viewers */
	uint64_t nstates;    /* counts changes of state */
};

static void
hang_up(struct client *c)
{
	hr_watch_drop(&c->watch);
	hr_watch_drop(&c->late);
	hr_fd_close(&c->fd);
	hr_buf_done(&c->in);
	hr_buf_done(&c->out);
	if (c->looks && --c->s->nlooking == 0)
		br_cast_to(c->s->b, NULL, NULL);
	c->looks = false;
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
static void on_sendable(void *arg);

/* Watches the connection either for writing or for reading. Returns -1 if the call closed it. */
static int
turn_to(struct client *c, bool writes)
{
	struct hr_err err = {0};

	hr_watch_free(c->watch);
	c->watch = writes ? hr_loop_writable(c->s->loop, c->fd, on_sendable, c, &err)
			  : hr_loop_readable(c->s->loop, c->fd, on_client, c, &err);
	if (c->watch != NULL)
		return 0;
	hr_log(HR_LOG_ERROR, "cannot answer a worker: %s", err.msg);
	hang_up(c);
	return -1;
}

static void
send_body(struct client *c, const struct hr_buf *body, int64_t status)
{
	struct hr_act_answer a = {.status = status};
	struct hr_err err = {0};

	a.body = (struct hr_span){hr_buf_str(body), body->len};
	c->sent = 0;
	hr_buf_reset(&c->out);
	if (hr_buf_check(body, &err) == 0) {
		hr_frame_put_answer(&c->out, &a);
		(void)hr_buf_check(&c->out, &err);
	}
	if (err.code == HR_OK) {
		(void)turn_to(c, true);
		return;
	}
	hr_log(HR_LOG_ERROR, "cannot answer a worker: %s", err.msg);
	hang_up(c);
}

static void
answer(struct client *c, const struct br_reply *reply)
{
	if (c->answered || c->fd < 0)
		return;
	c->answered = true;
	send_body(c, &reply->body, reply->status);
}

/* ---- viewers ---- */

/* Sends a viewer the news. A viewer that still reads the last message gets later news after it. */
static void
tell(struct client *c)
{
	struct serve *s = c->s;
	const struct br_cast *cast = &s->b->cast;
	HR_BUF(body, HR_FRAME_MAX - 65536);

	if (c->fd < 0 || c->sent < c->out.len ||
	    (c->seen_state == s->nstates && c->seen_picture == cast->number))
		return;
	hr_buf_adds(&body, "{");
	hr_buf_add(&body, hr_buf_str(&s->state), s->state.len);
	if (c->seen_picture != cast->number || c->once) {
		hr_buf_adds(&body, ",");
		br_cast_put_picture(cast, &body);
	}
	hr_buf_adds(&body, "}");
	c->seen_state = s->nstates;
	c->seen_picture = cast->number;
	c->answered = c->once;
	send_body(c, &body, 200);
}

/* Updates the viewers after a possible change. A viewer of a single picture waits for it. */
static void
look(void *arg)
{
	struct serve *s = arg;
	struct hr_buf state;
	struct client *c;

	hr_buf_init(&state, STATE_MAX);
	br_cast_put_state(s->b, s->busy, &state);
	if (s->nstates == 0 || state.len != s->state.len ||
	    memcmp(hr_buf_str(&state), hr_buf_str(&s->state), state.len) != 0) {
		hr_buf_done(&s->state);
		s->state = state;
		s->nstates++;
	} else {
		hr_buf_done(&state);
	}
	TAILQ_FOREACH(c, &s->clients, entry)
	{
		if (c->looks &&
		    (!c->once || s->b->cast.picture.len > 0 || s->b->cast.target[0] == '\0'))
			tell(c);
	}
}

static void
on_no_picture(void *arg)
{
	tell(arg);
}

static int
begin_looking(struct client *c, struct hr_err *err)
{
	struct serve *s = c->s;

	c->once = hr_py_truthy(hr_json_at(c->action, "once"));
	c->looks = true;
	s->nlooking++;
	c->seen_picture = s->b->cast.number;
	if (c->once) {
		c->late = hr_loop_timer(s->loop, on_no_picture, c, err);
		if (c->late == NULL || hr_watch_arm(c->late, PICTURE_MS, err) != 0)
			return -1;
	} else if (s->b->cast.picture.len > 0) {
		c->seen_picture--; /* makes the existing picture count as new */
	}
	br_cast_to(s->b, look, s);
	return 0;
}

/* ---- requests ---- */

static void
on_sendable(void *arg)
{
	struct client *c = arg;
	int r = hr_flush(c->fd, &c->out, &c->sent);

	if (r < 0 || (r > 0 && (!c->looks || c->once))) {
		hang_up(c);
	} else if (r > 0) {
		hr_buf_done(&c->out);
		hr_buf_init(&c->out, HR_FRAME_MAX + HR_FRAME_HEADER);
		c->sent = 0;
		if (turn_to(c, false) == 0)
			tell(c);
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
take_request(struct client *c, const struct hr_act_request *req, struct hr_err *err)
{
	if (req->type.len >= sizeof(c->type))
		return hr_err_set(err, HR_E_PROTO, "an action of the wrong type");
	memcpy(c->type, req->type.p, req->type.len);
	c->type[req->type.len] = '\0';
	if (hr_json_decode(req->action.p, req->action.len, &c->action, NULL) != 0 ||
	    c->action == NULL)
		return hr_err_set(err, HR_E_PROTO, "the action is not JSON");
	hr_buf_done(&c->in);
	if (strcmp(c->type, "watch") == 0)
		return begin_looking(c, err);
	if (strcmp(c->type, "browse") != 0 && strcmp(c->type, "browse_interactive") != 0)
		return hr_err_set(err, HR_E_PROTO, "an action of the wrong type");
	c->late = hr_loop_timer(c->s->loop, on_late, c, err);
	if (c->late == NULL || hr_watch_arm(c->late, BR_STEP_MS, err) != 0)
		return -1;
	hr_loop_stop(c->s->loop);
	return 0;
}

static int
read_request(struct client *c, struct hr_err *err)
{
	struct hr_act_request req;
	int r = hr_actin_read(c->fd, &c->in, &req, err);

	return r > 0 ? take_request(c, &req, err) : r;
}

/* Drops a worker that hangs up, or sends more after its request; its action still runs if
 * started. */
static void
on_client(void *arg)
{
	struct client *c = arg;
	struct hr_err err = {0};

	if (c->action == NULL && read_request(c, &err) == 0)
		return;
	if (err.code != HR_OK && err.code != HR_E_GONE)
		hr_log(HR_LOG_WARNING, "cannot read a request: %s", err.msg);
	hang_up(c);
}

static void
on_accept(void *arg)
{
	struct serve *s = arg;
	int fd = hr_fd_accept(s->listener, SOCK_NONBLOCK, -1);
	struct client *c;
	struct hr_err err = {0};

	if (fd < 0) {
		if (errno != EAGAIN)
			hr_log(HR_LOG_ERROR, "cannot accept a connection: %s", strerror(errno));
		return;
	}
	c = s->nclients < CLIENTS_MAX ? calloc(1, sizeof(*c)) : NULL;
	if (c == NULL) {
		hr_log(HR_LOG_WARNING, "too many actions wait for the browser");
		hr_fd_close(&fd);
		return;
	}
	c->s = s;
	c->fd = fd;
	hr_buf_init(&c->in, HR_ACTIN_MAX);
	hr_buf_init(&c->out, HR_FRAME_MAX + HR_FRAME_HEADER);
	TAILQ_INSERT_TAIL(&s->clients, c, entry);
	s->nclients++;
	c->watch = hr_loop_readable(s->loop, fd, on_client, c, &err);
	if (c->watch == NULL) {
		hr_log(HR_LOG_WARNING, "cannot listen to a worker: %s", err.msg);
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

/* Returns the next action whose worker still waits; frees finished ones. */
static struct client *
next(struct serve *s)
{
	struct client *c = TAILQ_FIRST(&s->clients);

	while (c != NULL) {
		struct client *then = TAILQ_NEXT(c, entry);

		if (c->fd < 0)
			client_free(c);
		else if (c->action != NULL && !c->answered && !c->looks)
			return c;
		c = then;
	}
	return NULL;
}

static void
perform(struct serve *s, struct client *c)
{
	struct br_reply reply;

	s->busy = true;
	br_cast_follow(s->b);
	br_step(s->b, s->d, c->type, c->action, &reply);
	s->busy = false;
	br_cast_follow(s->b);
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
	hr_buf_init(&s.state, STATE_MAX);
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
	hr_buf_done(&s.state);
	return r;
}
