/* Manages static sessions. Invariant: an entry is in the list exactly while its process lives; it
 * is never restarted. */
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
#include "base/path.h"
#include "supervisor/children/keeperargs.h"
#include "supervisor/children/service.h"
#include "supervisor/children/pool.h"
#include "supervisor/run/context.h"

struct hr_static_session {
	LIST_ENTRY(hr_static_session) entry;
	struct hr_static_sessions *all;
	struct hr_service svc;
	const char *dir; /* valid while the keeper is being started */
	int socket;      /* the worker's end; -1 once it is handed over */
	char *state_dir;
	int slot; /* the requesting worker; another process may have its slot by now */
	pid_t worker;
};

static struct hr_static_session *
static_of(const struct hr_service *svc)
{
	return svc->owner;
}

static void
count(struct hr_static_sessions *all, int more)
{
	all->count += (unsigned)more;
	atomic_store(&all->ctx->board->static_sessions, all->count);
}

static void
static_free(struct hr_static_session *t)
{
	LIST_REMOVE(t, entry);
	count(t->all, -1);
	hr_service_done(&t->svc);
	hr_fd_close(&t->socket);
	if (t->state_dir != NULL)
		(void)hr_path_remove(t->state_dir, NULL); /* leftovers are removed with DIR/shell */
	free(t->state_dir);
	free(t);
}

static void
static_answer(struct hr_static_session *t, const char *reason)
{
	struct hr_pool_worker *w = hr_pools_find(t->all->pools, t->slot, t->worker);

	if (w != NULL)
		hr_channel_give_static(&w->channel, t->socket, reason);
	hr_fd_close(&t->socket); /* the keeper notices the closed socket if there is no worker */
}

static void
static_ready(struct hr_service *svc)
{
	static_answer(static_of(svc), NULL);
}

static void
static_changed(struct hr_service *svc)
{
	struct hr_static_session *t = static_of(svc);
	struct hr_context *ctx = t->all->ctx;

	if (svc->state == HR_SERVICE_STOPPED) {
		if (t->socket >= 0)
			static_answer(t, svc->reason[0] != '\0'
					     ? svc->reason
					     : "its keeper ended before it was ready");
		static_free(t);
	}
	ctx->changed(ctx);
}

static void
static_lost(struct hr_service *svc, const struct hr_exit *how, bool worked, int64_t delay)
{
	(void)delay;
	if (!worked && svc->reason[0] != '\0')
		hr_log(HR_LOG_WARNING, "%s did not start: %s", svc->child.name, svc->reason);
	else if (how->killed || how->code != 0)
		hr_log(HR_LOG_WARNING, "%s ended: %s", svc->child.name, hr_exit_text(how));
	hr_service_set(svc, HR_SERVICE_STOPPED);
}

/* Chooses a name that no surviving session of a killed predecessor uses. */
static void
static_name(struct hr_static_session *t)
{
	struct hr_static_sessions *all = t->all;
	bool taken;

	do {
		HR_FREE char *path = NULL;

		(void)snprintf(
		    t->svc.child.name, sizeof(t->svc.child.name), "static-%u", ++all->serial);
		path = hr_rundir_file(&all->ctx->run, "shell/%s", t->svc.child.name);
		taken = path != NULL && access(path, F_OK) == 0;
	} while (taken);
}

static int
static_spawn(struct hr_service *svc, int ready, struct hr_err *err)
{
	struct hr_static_session *t = static_of(svc);
	const struct hr_context *ctx = t->all->ctx;
	struct hr_keeper_args a;
	int pair[2], ok;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return hr_err_sys(err, errno, "socketpair");
	t->socket = pair[0];
	ok = hr_keeper_args_init(&a, ctx, svc->child.name,
	    t->dir[0] != '\0' ? t->dir : ctx->settings.working_dir, true, err);
	if (ok == 0) {
		ok = hr_keeper_spawn(ctx, &svc->child, &a, ready, pair[1], NULL, NULL, NULL, err);
		t->state_dir = a.state_dir;
		a.state_dir = NULL;
	}
	hr_fd_close(&pair[1]);
	hr_keeper_args_done(&a);
	return ok;
}

static const struct hr_service_ops static_ops = {
    .spawn = static_spawn,
    .changed = static_changed,
    .ready = static_ready,
    .lost = static_lost,
    .says_ready = true,
};

void
hr_static_sessions_new(struct hr_static_sessions *all, struct hr_pool_worker *w, const char *dir)
{
	struct hr_static_session *t;
	struct hr_err err = {0};

	if (all->stopping || all->count >= all->ctx->settings.static_sessions_max) {
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
	t->dir = dir;
	t->socket = -1;
	t->slot = w->slot;
	t->worker = w->child.pid;
	hr_service_init(&t->svc, &static_ops, t, all->ctx->kids);
	static_name(t);
	LIST_INSERT_HEAD(&all->list, t, entry);
	count(all, 1);
	if (hr_service_open(&t->svc, &err) < 0 || hr_service_start(&t->svc, 0, &err) < 0) {
		hr_log(HR_LOG_ERROR, "%s", err.msg);
		hr_channel_give_static(&w->channel, -1, err.msg);
		static_free(t);
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
		hr_service_stop(
		    &t->svc, SIGTERM, fast ? 1000 : all->ctx->settings.session_stop_timeout * 1000);
	}
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
	struct hr_static_session *t;

	while ((t = LIST_FIRST(&all->list)) != NULL)
		static_free(t);
}
