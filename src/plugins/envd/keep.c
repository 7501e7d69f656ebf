/* The keeper. Invariants: a process that runs has `pid`, which this process has not waited for yet;
 * what the server must learn of an entry is in `pending` until the socket has taken the packet. */
#include "config.h"

#include "plugins/envd/keep.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/queue.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"

/* ms without a server after which the sandbox has ended for good; handraild's successor is there
 * within seconds */
#define ALONE_MS 60000

enum pending { NONE = 0, ENTRY = 1, STARTED = 2, ENDED = 4 };

struct entry {
	TAILQ_ENTRY(entry) link;
	uint32_t id, state, status, failure;
	unsigned pending;
	pid_t pid;
	int64_t ended_ms;
	bool forgotten; /* the server needs nothing of it any more */
	int fds[ENVD_FDS];
};

struct keeper {
	struct hr_loop *loop;
	struct rlimit nofile; /* as it was given to this process */
	int listener, server, handraild;
	bool greeted; /* the server has all entries */
	struct hr_watch *accepts, *reads, *writes, *above, *alone;
	TAILQ_HEAD(entries, entry) entries; /* the latest is the first */
	size_t unsent;                      /* entries with something pending */
	struct envd_child next;             /* waits for the next process */
};

static void flush(struct keeper *k);

/* ---- entries ---- */

static struct entry *
find(const struct keeper *k, uint32_t id)
{
	struct entry *e;

	TAILQ_FOREACH(e, &k->entries, link)
	{
		if (e->id == id)
			break;
	}
	return e;
}

static void
set_pending(struct keeper *k, struct entry *e, unsigned pending)
{
	k->unsent += (pending != NONE) - (e->pending != NONE);
	e->pending = pending;
}

static void
close_mask(struct entry *e, uint32_t mask)
{
	size_t i;

	for (i = 0; i < ENVD_FDS; i++)
		if ((mask & 1u << i) != 0)
			hr_fd_close(&e->fds[i]);
}

static void
entry_free(struct keeper *k, struct entry *e)
{
	set_pending(k, e, NONE);
	close_mask(e, ~0u);
	TAILQ_REMOVE(&k->entries, e, link);
	free(e);
}

/* ---- packets to the server ---- */

static int
send_pending(struct keeper *k, struct entry *e)
{
	struct envd_packet p = {.id = e->id,
	    .pid = e->pid,
	    .state = e->state,
	    .status = e->status,
	    .ended_ms = e->ended_ms};
	const int *fds = NULL;
	unsigned what = e->pending & -e->pending; /* the lowest one: the order of events */

	if (what == ENTRY) {
		p.op = ENVD_KEEP_ENTRY;
		fds = e->fds;
		what = ENTRY | STARTED | ENDED;
	} else if (what == STARTED) {
		p.op = ENVD_KEEP_STARTED;
		p.value = e->failure;
	} else {
		p.op = ENVD_KEEP_ENDED;
		p.value = e->status;
	}
	if (envd_packet_send(k->server, &p, fds, MSG_DONTWAIT) != 0)
		return -1;
	set_pending(k, e, e->pending & ~what);
	return 0;
}

static void
drop_server(struct keeper *k)
{
	struct hr_err err = {0};

	hr_watch_drop(&k->reads);
	hr_watch_drop(&k->writes);
	hr_fd_close(&k->server);
	k->greeted = false;
	if (hr_watch_arm(k->alone, ALONE_MS, &err) != 0)
		hr_log(HR_LOG_ERROR, "%s", err.msg);
}

static void
on_writable(void *arg)
{
	struct keeper *k = arg;

	hr_watch_drop(&k->writes);
	flush(k);
}

/* Returns false if the socket takes nothing more now. */
static bool
took(struct keeper *k, int r)
{
	if (r == 0)
		return true;
	if (errno != EAGAIN && errno != ENOBUFS)
		drop_server(k);
	else if (k->writes == NULL)
		k->writes = hr_loop_writable(k->loop, k->server, on_writable, k, NULL);
	return false;
}

static void
flush(struct keeper *k)
{
	struct envd_packet ready = {.op = ENVD_KEEP_READY, .value = ENVD_KEEP_VERSION};
	struct entry *e;

	if (k->server < 0 || k->writes != NULL)
		return;
	TAILQ_FOREACH(e, &k->entries, link)
	{
		if (k->unsent == 0)
			break;
		while (e->pending != NONE)
			if (!took(k, send_pending(k, e)))
				return;
	}
	if (!k->greeted && took(k, envd_packet_send(k->server, &ready, NULL, MSG_DONTWAIT)))
		k->greeted = true;
}

/* ---- processes ---- */

static void __attribute__((noreturn)) end_all(struct keeper *k)
{
	const struct entry *e;

	TAILQ_FOREACH(e, &k->entries, link)
	{
		if (e->state == ENVD_RUNS)
			(void)kill(e->pid, SIGKILL);
	}
	/* children of commands are in the keeper's group as well */
	if (getpgrp() == getpid())
		(void)kill(0, SIGKILL);
	_exit(0);
}

static void
on_child(void *arg)
{
	struct keeper *k = arg;
	struct entry *e;
	int status;
	pid_t pid;
	bool ended = false;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid == k->next.pid)
			envd_child_drop(&k->next);
		TAILQ_FOREACH(e, &k->entries, link)
		{
			if (e->state == ENVD_RUNS && e->pid == pid)
				break;
		}
		if (e == NULL)
			continue;
		ended = true;
		e->state = ENVD_ENDED;
		e->status = (uint32_t)status;
		e->ended_ms = hr_now_ms();
		set_pending(k, e, e->pending | ENDED);
		if (e->forgotten)
			entry_free(k, e);
	}
	flush(k);
	/* while the client learns of the end, and no start waits; hand_over() tries again */
	if (ended && k->next.pid == 0)
		(void)envd_child_fork(&k->next, &k->nofile);
}

/* Gives a process to the waiting child. Returns 0 or an errno: EPIPE if the child was killed. */
static int
hand_over(struct keeper *k, struct entry *e)
{
	struct envd_packet p = {.op = ENVD_KEEP_START};

	if (k->next.pid == 0 && envd_child_fork(&k->next, &k->nofile) != 0)
		return errno;
	if (envd_packet_send(k->next.sock, &p, e->fds, 0) != 0)
		return errno;
	e->pid = k->next.pid;
	/* the account may have stopped it, if it is the keeper's own */
	(void)kill(e->pid, SIGCONT);
	envd_child_drop(&k->next);
	return 0;
}

static void
start(struct keeper *k, struct entry *e)
{
	int sys = hand_over(k, e);

	if (sys == EPIPE) {
		envd_child_drop(&k->next);
		sys = hand_over(k, e);
	}
	e->failure = (uint32_t)sys;
	close_mask(e, ~((1u << ENVD_FDS_KEPT) - 1));
	e->state = sys == 0 ? ENVD_RUNS : ENVD_ENDED;
	set_pending(k, e, STARTED);
}

static void
add(struct keeper *k, uint32_t id, int fds[ENVD_FDS])
{
	struct entry *e = calloc(1, sizeof(*e));
	size_t i;

	if (e == NULL) {
		/* the server would wait for ever */
		drop_server(k);
		for (i = 0; i < ENVD_FDS; i++)
			hr_fd_close(&fds[i]);
		return;
	}
	e->id = id;
	for (i = 0; i < ENVD_FDS; i++)
		e->fds[i] = fds[i];
	TAILQ_INSERT_HEAD(&k->entries, e, link);
	start(k, e);
	flush(k);
}

/* ---- packets from the server ---- */

static void
on_handraild_gone(void *arg)
{
	struct keeper *k = arg;

	hr_watch_drop(&k->above);
	hr_fd_close(&k->handraild);
}

static void
hello(struct keeper *k, int *pidfd)
{
	hr_watch_free(k->above);
	hr_fd_close(&k->handraild);
	k->handraild = *pidfd;
	*pidfd = -1;
	k->above = k->handraild >= 0
		       ? hr_loop_readable(k->loop, k->handraild, on_handraild_gone, k, NULL)
		       : NULL;
}

static void
handle(struct keeper *k, const struct envd_packet *p, int fds[ENVD_FDS])
{
	struct entry *e;

	switch (p->op) {
	case ENVD_KEEP_END: end_all(k);
	case ENVD_KEEP_HELLO: hello(k, &fds[0]); return;
	case ENVD_KEEP_START: add(k, p->id, fds); return;
	default:;
	}
	e = find(k, p->id);
	if (e == NULL)
		return;
	if (p->op == ENVD_KEEP_SIGNAL && e->state == ENVD_RUNS)
		(void)kill(e->pid, (int)p->value);
	else if (p->op == ENVD_KEEP_CLOSE)
		close_mask(e, p->value);
	else if (p->op == ENVD_KEEP_FORGET && e->state == ENVD_ENDED)
		entry_free(k, e);
	else if (p->op == ENVD_KEEP_FORGET)
		e->forgotten = true;
}

static void
on_server(void *arg)
{
	struct keeper *k = arg;
	struct envd_packet p;
	int fds[ENVD_FDS], r;

	while (k->server >= 0) {
		r = envd_packet_recv(k->server, &p, fds, MSG_DONTWAIT);
		if (r < 0 && errno == EAGAIN)
			return;
		if (r <= 0)
			drop_server(k);
		else
			handle(k, &p, fds);
	}
}

/* Accepts a new server, which replaces the old one: that has ended or is about to. */
static void
on_connection(void *arg)
{
	struct keeper *k = arg;
	struct entry *e;
	int fd = hr_fd_accept(k->listener, SOCK_CLOEXEC, -1);

	if (fd < 0)
		return;
	drop_server(k);
	hr_watch_disarm(k->alone);
	k->server = fd;
	k->reads = hr_loop_readable(k->loop, fd, on_server, k, NULL);
	TAILQ_FOREACH(e, &k->entries, link)
	{
		set_pending(k, e, ENTRY);
	}
	flush(k);
}

static void
on_alone(void *arg)
{
	struct keeper *k = arg;

	if (k->handraild < 0)
		end_all(k);
	/* the server is missing while handraild runs, as when it cannot be started */
	(void)hr_watch_arm(k->alone, ALONE_MS, NULL);
}

static void
on_term(void *arg)
{
	end_all(arg);
}

static int
open_keeper(struct keeper *k, struct hr_err *err)
{
	struct rlimit more;

	if (getrlimit(RLIMIT_NOFILE, &k->nofile) == 0) {
		more = k->nofile;
		more.rlim_cur = more.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &more);
	}
	if (hr_fd_cloexec(k->listener, err) != 0 || hr_fd_nonblock(k->listener, true, err) != 0)
		return -1;
	k->loop = hr_loop_new(err);
	if (k->loop == NULL)
		return -1;
	k->accepts = hr_loop_readable(k->loop, k->listener, on_connection, k, err);
	k->alone = hr_loop_timer(k->loop, on_alone, k, err);
	if (k->accepts == NULL || k->alone == NULL ||
	    hr_loop_signal(k->loop, SIGCHLD, on_child, k, err) == NULL ||
	    hr_loop_signal(k->loop, SIGTERM, on_term, k, err) == NULL)
		return -1;
	return hr_watch_arm(k->alone, ALONE_MS, err);
}

int
envd_keep_run(int listener)
{
	struct keeper k = {.listener = listener, .server = -1, .handraild = -1, .next.sock = -1};
	struct hr_err err = {0};

	TAILQ_INIT(&k.entries);
	/* started as /proc/self/exe: a fork of a box reports processes by their names */
	(void)prctl(PR_SET_NAME, "handrail-envd");
	if (open_keeper(&k, &err) == 0)
		(void)hr_loop_run(k.loop, &err);
	hr_log(HR_LOG_ERROR, "the keeper of processes: %s", err.msg);
	return EXIT_FAILURE;
}
