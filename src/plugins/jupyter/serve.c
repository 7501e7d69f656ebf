/* Runs the loop. It waits in zmq_poll(), which handles both ZeroMQ sockets and descriptors.
 * Invariant: a client has a job exactly from the end of its request to the end of its answer. */
#include "config.h"

#include "plugins/jupyter/serve.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <zmq.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/flush.h"
#include "base/log.h"
#include "base/process/spawn.h"
#include "proto/actin.h"

#define CLIENTS_MAX 512 /* maximum of clients; there cannot be as many workers */
#define FIXED 6         /* number of items before those of the clients */
#define END_MS 2000     /* ms for the kernel to exit on request */

enum { ITEM_SIGNAL, ITEM_LISTENER, ITEM_PIDFD, ITEM_SHELL, ITEM_IOPUB, ITEM_CODE };

struct client {
	int fd;
	struct hr_buf in;
	struct hr_job *job;
	size_t sent;
};

struct serve {
	struct hr_jupyter *j;
	int listener, http, ready, signals;
	pid_t code; /* process of the code interpreter; 0: none */
	int code_end;
	bool ending;
	struct client clients[CLIENTS_MAX];
	size_t nclients;
	zmq_pollitem_t items[FIXED + CLIENTS_MAX];
};

static void
client_close(struct serve *s, struct client *c)
{
	if (c->job != NULL)
		hr_jupyter_release(s->j, c->job);
	hr_buf_done(&c->in);
	hr_fd_close(&c->fd);
	c->job = NULL;
}

static void
client_accept(struct serve *s)
{
	int fd = hr_fd_accept(s->listener, SOCK_NONBLOCK, s->signals);
	struct client *c;

	if (fd < 0) {
		if (errno != EAGAIN)
			hr_log(HR_LOG_ERROR, "cannot accept a connection: %s", strerror(errno));
		return;
	}
	hr_assert(s->nclients < CLIENTS_MAX);
	c = &s->clients[s->nclients++];
	memset(c, 0, sizeof(*c));
	c->fd = fd;
	hr_buf_init(&c->in, HR_ACTIN_MAX);
}

static int
client_read(struct serve *s, struct client *c, struct hr_err *err)
{
	struct hr_act_request req;
	int r = hr_actin_read(c->fd, &c->in, &req, err);

	if (r <= 0)
		return r;
	c->job = hr_span_equal(req.type, hr_span_of("cells")) ? hr_jupyter_list(s->j, err)
							      : hr_jupyter_submit(s->j, &req, err);
	hr_buf_done(&c->in);
	return c->job != NULL ? 0 : -1;
}

/* Sends. Returns -1 also when everything is sent, to close the connection. */
static int
client_write(struct client *c)
{
	const struct hr_buf *b = &c->job->answer;

	return b->fail == HR_OK && hr_flush(c->fd, b, &c->sent) == 0 ? 0 : -1;
}

/* Handles a client's events. One that hangs up, or sends more after its request, is closed; its
 * cell continues. */
static int
client_turn(struct serve *s, struct client *c, short events)
{
	struct hr_err err = {0};

	if (c->job == NULL)
		return (events & (ZMQ_POLLIN | ZMQ_POLLERR)) != 0 ? client_read(s, c, &err) : 0;
	if (c->job->done)
		return client_write(c);
	return (events & (ZMQ_POLLIN | ZMQ_POLLERR)) != 0 ? -1 : 0;
}

static void
clients_turn(struct serve *s, size_t polled)
{
	size_t i;

	for (i = 0; i < s->nclients; i++) {
		short events = i < polled ? s->items[FIXED + i].revents : 0;

		if (client_turn(s, &s->clients[i], events) != 0)
			client_close(s, &s->clients[i]);
	}
	/* remove closed clients only now: the items' numbers depend on their places */
	for (i = 0; i < s->nclients;) {
		if (s->clients[i].fd < 0)
			s->clients[i] = s->clients[--s->nclients];
		else
			i++;
	}
}

static void
tell_ready(struct serve *s)
{
	char text[256];

	if (s->ready < 0 || (!s->j->was_ready && s->j->failure[0] == '\0'))
		return;
	(void)snprintf(
	    text, sizeof(text), s->j->was_ready ? "ready\n" : "failed %s\n", s->j->failure);
	(void)hr_fd_write_full(s->ready, text, strlen(text), NULL);
	hr_fd_close(&s->ready);
	if (!s->j->was_ready)
		s->ending = true;
}

/* Ends the process of the code interpreter if there is one; the kernels end with it. */
static void
code_end(struct serve *s, int signo)
{
	int status = 0;

	if (s->code > 0) {
		(void)kill(s->code, signo);
		(void)hr_spawn_end(s->code, &status);
		if (signo == SIGKILL)
			hr_log(HR_LOG_WARNING, "the code interpreter ended (%s)",
			    hr_exit_words(status));
	}
	hr_fd_close(&s->code_end);
	s->code = 0;
}

/* Starts the process of the code interpreter. On failure one waiting client is refused, so that the
 * others cause no endless loop. */
static void
code_start(struct serve *s)
{
	static const char *const argv[] = {"handrail-jupyter", HR_SERVE_CODE, NULL};
	const struct hr_spawn_fd fds[] = {
	    {s->http, HR_SERVE_CODE_FD}, {STDERR_FILENO, STDERR_FILENO}};
	struct hr_err err = {0};
	int client;

	s->code = hr_spawn(&(const struct hr_spawn){.path = "/proc/self/exe",
			       .argv = argv,
			       .fds = fds,
			       .nfds = 2,
			       .pdeathsig = SIGKILL,
			       .umask = -1},
	    &err);
	s->code_end = s->code > 0 ? hr_pidfd_open(s->code) : -1;
	if (s->code_end >= 0)
		return;
	hr_log(HR_LOG_ERROR, "the code interpreter cannot be started: %s", err.msg);
	code_end(s, SIGKILL);
	client = hr_fd_accept(s->http, SOCK_NONBLOCK, s->signals);
	hr_fd_close(&client);
}

static size_t
fill_items(struct serve *s)
{
	const struct hr_kernel *k = &s->j->kernel;
	size_t i;

	memset(s->items, 0, sizeof(s->items[0]) * (FIXED + s->nclients));
	s->items[ITEM_SIGNAL].fd = s->signals;
	s->items[ITEM_LISTENER].fd = s->listener;
	/* a silent descriptor stands for a missing one */
	s->items[ITEM_PIDFD].fd = k->pid != 0 ? k->pidfd : s->signals;
	s->items[ITEM_SHELL].fd = s->items[ITEM_IOPUB].fd = s->signals;
	if (k->pid != 0) {
		s->items[ITEM_SHELL].socket = k->shell;
		s->items[ITEM_IOPUB].socket = k->iopub;
	}
	s->items[ITEM_CODE].fd = s->code != 0 ? s->code_end : s->http;
	for (i = 0; i < FIXED; i++)
		s->items[i].events = ZMQ_POLLIN;
	if (s->nclients == CLIENTS_MAX || s->ready >= 0)
		s->items[ITEM_LISTENER].events = 0;
	for (i = 0; i < s->nclients; i++) {
		const struct client *c = &s->clients[i];

		s->items[FIXED + i].fd = c->fd;
		s->items[FIXED + i].events =
		    c->job != NULL && c->job->done ? ZMQ_POLLOUT : ZMQ_POLLIN;
	}
	return s->nclients;
}

static long
wait_ms(const struct serve *s)
{
	int64_t left;

	if (s->j->deadline_ms < 0)
		return -1;
	left = s->j->deadline_ms - hr_now_ms();
	return left > 0 ? (long)left : 0;
}

static int
turn(struct serve *s, struct hr_err *err)
{
	size_t polled = fill_items(s);

	if (zmq_poll(s->items, (int)(FIXED + polled), wait_ms(s)) < 0 && zmq_errno() != EINTR)
		return hr_err_set(err, HR_E_SYS, "zmq_poll: %s", zmq_strerror(zmq_errno()));
	if (s->items[ITEM_SIGNAL].revents != 0)
		s->ending = true;
	hr_jupyter_received(s->j);
	if (s->j->kernel.pid != 0 && s->items[ITEM_PIDFD].fd == s->j->kernel.pidfd &&
	    s->items[ITEM_PIDFD].revents != 0)
		hr_jupyter_ended(s->j);
	if (s->j->deadline_ms >= 0 && s->j->deadline_ms <= hr_now_ms())
		hr_jupyter_late(s->j);
	clients_turn(s, polled);
	if (s->items[ITEM_LISTENER].revents != 0)
		client_accept(s);
	if (s->items[ITEM_CODE].revents != 0 && s->code == 0)
		code_start(s);
	else if (s->items[ITEM_CODE].revents != 0)
		code_end(s, SIGKILL);
	hr_jupyter_advance(s->j, s->ready >= 0);
	tell_ready(s);
	/* send the answers made in this iteration */
	clients_turn(s, 0);
	return 0;
}

/* Ends the kernel, and leaves its exit handlers some time. */
static void
end_kernel(struct hr_kernel *k)
{
	zmq_pollitem_t item = {.fd = k->pidfd, .events = ZMQ_POLLIN};

	if (k->pid == 0)
		return;
	hr_kernel_interrupt(k);
	hr_kernel_shutdown(k);
	(void)zmq_poll(&item, 1, END_MS);
	hr_kernel_kill(k);
}

/* Returns true if only clients of the code interpreter wait. */
static bool
is_for_code(const struct serve *s)
{
	zmq_pollitem_t items[] = {
	    {.fd = s->http, .events = ZMQ_POLLIN}, {.fd = s->listener, .events = ZMQ_POLLIN}};

	return zmq_poll(items, 2, 0) > 0 && items[0].revents != 0 && items[1].revents == 0;
}

int
hr_serve(struct hr_jupyter *j, int listener, int http, int ready, struct hr_err *err)
{
	struct serve *s = calloc(1, sizeof(*s));
	sigset_t set;
	bool lazy;
	int r = 0;

	if (s == NULL)
		return hr_err_nomem(err);
	s->j = j;
	s->listener = listener;
	s->http = http;
	s->code_end = -1;
	s->ready = ready;
	lazy = is_for_code(s);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	s->signals = signalfd(-1, &set, SFD_CLOEXEC);
	if (s->signals < 0)
		r = hr_err_sys(err, errno, "signalfd");
	if (r == 0 && lazy) {
		(void)hr_fd_write_full(s->ready, "ready\n", 6, NULL);
		hr_fd_close(&s->ready);
	} else if (r == 0) {
		hr_jupyter_advance(j, true);
		tell_ready(s); /* reports the reason if the kernel cannot be started */
	}
	while (r == 0 && !s->ending)
		r = turn(s, err);
	tell_ready(s);
	code_end(s, SIGTERM);
	end_kernel(&j->kernel);
	while (s->nclients > 0)
		client_close(s, &s->clients[--s->nclients]);
	hr_fd_close(&s->ready);
	hr_fd_close(&s->signals);
	free(s);
	if (r == 0 && !j->was_ready && !lazy)
		return hr_err_set(err, HR_E_GONE, "%s", j->failure);
	return r;
}
