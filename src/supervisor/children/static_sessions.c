/* Static sessions. Invariant: an entry is in the list exactly while its process lives. */
#include "config.h"

#include "supervisor/children/static_sessions.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/path.h"
#include "supervisor/children/keeperargs.h"
#include "supervisor/children/readyline.h"
#include "supervisor/children/pool.h"
#include "supervisor/run/context.h"

struct hr_static_session {
	LIST_ENTRY(hr_static_session) entry;
	struct hr_static_sessions *all;
	struct hr_child child;
	struct hr_readyline line;
	int socket; /* the worker's end, until it is handed over; -1 then */
	char *state_dir;
	int slot; /* who asked; the worker may be gone, and another one in its place */
	pid_t worker;
};

static void
static_free(struct hr_static_session *t)
{
	hr_readyline_close(&t->line);
	hr_fd_close(&t->socket);
	if (t->state_dir != NULL)
		(void)hr_path_remove(t->state_dir, NULL); /* what is left goes with DIR/shell */
	free(t->state_dir);
	free(t);
}

static void
static_answer(struct hr_static_session *t, const char *reason)
{
	struct hr_pool_worker *w = hr_pools_find(t->all->pools, t->slot, t->worker);

	if (w != NULL)
		hr_channel_give_static(&w->channel, t->socket, reason);
	hr_fd_close(&t->socket); /* ours was a copy; without a worker the keeper sees its end */
}

static void
static_ready(void *arg, bool ready, const char *reason)
{
	struct hr_static_session *t = arg;

	if (ready) {
		static_answer(t, NULL);
		t->all->ctx->changed(t->all->ctx);
		return;
	}
	hr_log(HR_LOG_WARNING, "%s did not start: %s", t->child.name, reason);
	static_answer(t, reason);
	hr_child_signal(&t->child, SIGTERM);
}

static void
static_ended(void *arg, const struct hr_exit *how)
{
	struct hr_static_session *t = arg;
	struct hr_static_sessions *all = t->all;

	if (how->killed || how->code != 0)
		hr_log(HR_LOG_WARNING, "%s ended: %s", t->child.name, hr_exit_text(how));
	if (t->socket >= 0)
		static_answer(t, "its keeper ended before it was ready");
	LIST_REMOVE(t, entry);
	all->count--;
	atomic_store(&all->ctx->board->static_sessions, all->count);
	static_free(t);
	all->ctx->changed(all->ctx);
}

/* Not that of one that a killed predecessor started and that still works. */
static void
static_name(struct hr_static_session *t)
{
	struct hr_static_sessions *all = t->all;
	char below[80], *path;
	bool taken;

	do {
		(void)snprintf(t->child.name, sizeof(t->child.name), "static-%u", ++all->serial);
		(void)snprintf(below, sizeof(below), "shell/%s", t->child.name);
		path = hr_rundir_file(&all->ctx->run, below);
		taken = path != NULL && access(path, F_OK) == 0;
		free(path);
	} while (taken);
}

static int
static_start(struct hr_static_session *t, const char *dir, struct hr_err *err)
{
	const struct hr_context *ctx = t->all->ctx;
	struct hr_keeper_args a;
	int ready = -1, pair[2], ok;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return hr_err_sys(err, errno, "socketpair");
	t->socket = pair[0];
	ok = hr_keeper_args_init(
	    &a, ctx, t->child.name, dir[0] != '\0' ? dir : ctx->settings.working_dir, true, err);
	if (ok == 0)
		ok = hr_readyline_open(&t->line, ctx->loop, static_ready, t, &ready, err);
	if (ok == 0) {
		ok = hr_keeper_spawn(ctx, &t->child, &a, ready, pair[1], NULL, NULL, NULL, err);
		t->state_dir = a.state_dir;
		a.state_dir = NULL;
	}
	hr_fd_close(&ready);
	hr_fd_close(&pair[1]);
	hr_keeper_args_done(&a);
	return ok;
}

void
hr_static_sessions_new(struct hr_static_sessions *all, struct hr_pool_worker *w, const char *dir)
{
	struct hr_context *ctx = all->ctx;
	struct hr_err err = {0};
	struct hr_static_session *t;

	if (all->stopping || all->count >= ctx->settings.static_sessions_max) {
		hr_channel_give_static(&w->channel, -1,
		    all->stopping ? "the server is ending" : "too many static sessions");
		return;
	}
	t = calloc(1, sizeof(*t));
	if (t == NULL) {
		hr_channel_give_static(&w->channel, -1, "out of memory");
		return;
	}
	t->all = all;
	t->socket = t->line.fd = -1;
	t->slot = w->slot;
	t->worker = w->child.pid;
	t->child.kids = ctx->kids;
	t->child.arg = t;
	t->child.on_exit = static_ended;
	static_name(t);
	if (static_start(t, dir, &err) < 0) {
		hr_log(HR_LOG_ERROR, "%s", err.msg);
		hr_channel_give_static(&w->channel, -1, err.msg);
		static_free(t);
		return;
	}
	LIST_INSERT_HEAD(&all->list, t, entry);
	all->count++;
	atomic_store(&ctx->board->static_sessions, all->count);
}

static void
statics_patience_over(void *arg)
{
	struct hr_static_sessions *all = arg;
	struct hr_static_session *t;

	LIST_FOREACH(t, &all->list, entry)
	{
		hr_child_signal(&t->child, SIGKILL);
	}
}

void
hr_static_sessions_init(
    struct hr_static_sessions *all, struct hr_context *ctx, const struct hr_pools *pools)
{
	memset(all, 0, sizeof(*all));
	all->ctx = ctx;
	all->pools = pools;
	LIST_INIT(&all->list);
}

void
hr_static_sessions_stop(struct hr_static_sessions *all, bool fast)
{
	struct hr_static_session *t;

	all->stopping = true;
	LIST_FOREACH(t, &all->list, entry)
	{
		hr_child_signal(&t->child, SIGTERM);
	}
	if (LIST_EMPTY(&all->list))
		return;
	if (all->patience == NULL)
		all->patience = hr_loop_timer(all->ctx->loop, statics_patience_over, all, NULL);
	if (all->patience == NULL ||
	    hr_watch_arm(all->patience,
		fast ? 1000 : all->ctx->settings.session_stop_timeout * 1000, NULL) != 0)
		statics_patience_over(all);
}

bool
hr_static_sessions_asked(const struct hr_static_sessions *all)
{
	const struct hr_static_session *t;

	LIST_FOREACH(t, &all->list, entry)
	{
		if (t->socket >= 0)
			return true;
	}
	return false;
}

bool
hr_static_sessions_gone(const struct hr_static_sessions *all)
{
	return LIST_EMPTY(&all->list);
}

void
hr_static_sessions_done(struct hr_static_sessions *all)
{
	hr_watch_free(all->patience);
	all->patience = NULL;
}
