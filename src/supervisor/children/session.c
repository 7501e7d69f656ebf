/* Manages keepers. Invariant: a session's socket is open from the first start to the end, so a
 * worker that connects while there is no keeper waits instead of failing. */
#include "config.h"

#include "supervisor/children/session.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/process/pid.h"
#include "base/log.h"
#include "base/loop.h"
#include "supervisor/children/keeperargs.h"
#include "supervisor/run/context.h"

static struct hr_session *
keeper_of(const struct hr_service *svc)
{
	return svc->owner;
}

static const char *
keeper_dir(const struct hr_session *k)
{
	return k->dir != NULL ? k->dir : k->ctx->settings.working_dir;
}

static void
keeper_changed(struct hr_service *svc)
{
	keeper_of(svc)->changed(keeper_of(svc));
}

static void
default_changed(struct hr_session *k)
{
	atomic_store(
	    &k->ctx->board->session_pid, k->adopted.pid != 0 ? k->adopted.pid : k->svc.child.pid);
	k->ctx->changed(k->ctx);
}

static void
default_failed(struct hr_session *k, const char *why)
{
	k->ctx->start_failed(k->ctx, why);
}

static void
keeper_ready(struct hr_service *svc)
{
	keeper_of(svc)->renewed = false;
	hr_log(HR_LOG_INFO, "%s: the shell is ready (process %ld)", svc->child.name,
	    (long)svc->child.pid);
}

static void
store_close(struct hr_session *k)
{
	hr_fd_close(&k->store[0]);
	hr_fd_close(&k->store[1]);
}

static void
keeper_ended(struct hr_service *svc, const struct hr_exit *how)
{
	struct hr_session *k = keeper_of(svc);

	(void)how;
	hr_rundir_remove(&k->ctx->run, "%s", k->record);
	if (svc->state == HR_SERVICE_STOPPING)
		store_close(k); /* closes the last descriptors of a killed keeper's shell */
}

static void
keeper_lost(struct hr_service *svc, const struct hr_exit *exited, bool worked, int64_t delay)
{
	struct hr_session *k = keeper_of(svc);
	char why[sizeof(svc->reason) + 64];
	const char *how =
	    exited != NULL ? hr_exit_text(exited) : "how, only its first parent could know";

	atomic_fetch_add(&k->ctx->board->metrics.restarts[HR_RESTART_SESSION], 1);
	if (!worked && svc->reason[0] != '\0')
		hr_log(
		    HR_LOG_ERROR, "%s: the shell did not start: %s", svc->child.name, svc->reason);
	hr_log(HR_LOG_ERROR,
	    "%s: the keeper of the shell ended (%s); another one starts in %lld ms",
	    svc->child.name, how, (long long)delay);
	if (svc->reason[0] == '\0')
		(void)snprintf(svc->reason, sizeof(svc->reason), "the keeper ended: %s", how);
	hr_service_down(svc, HR_SERVICE_DOWN, delay);
	if (exited == NULL) /* an inherited keeper may have been killed with its supervisor */
		return;
	(void)snprintf(why, sizeof(why), "the keeper of the shell ended: %s", svc->reason);
	k->failed(k, why);
}

static void
keeper_again(struct hr_service *svc)
{
	struct hr_err err = {0};

	if (hr_session_start(keeper_of(svc), &err) < 0)
		hr_service_retry(svc, &err);
}

static void
keeper_signal(struct hr_service *svc, int sig)
{
	hr_adopt_signal(&keeper_of(svc)->adopted, sig);
}

static int keeper_spawn(struct hr_service *svc, int ready, struct hr_err *err);

static const struct hr_service_ops keeper_ops = {
    .spawn = keeper_spawn,
    .changed = keeper_changed,
    .ready = keeper_ready,
    .ended = keeper_ended,
    .lost = keeper_lost,
    .again = keeper_again,
    .signal = keeper_signal,
    .says_ready = true,
};

void
hr_session_init(struct hr_session *k, struct hr_context *ctx)
{
	memset(k, 0, sizeof(*k));
	k->ctx = ctx;
	k->listener = k->store[0] = k->store[1] = -1;
	k->adopted.pidfd = -1;
	hr_service_init(&k->svc, &keeper_ops, k, ctx->kids);
	k->changed = default_changed;
	k->failed = default_failed;
	(void)snprintf(k->svc.child.name, sizeof(k->svc.child.name), "session");
	(void)snprintf(k->name, sizeof(k->name), "default");
	(void)snprintf(k->socket, sizeof(k->socket), "session.sock");
	(void)snprintf(k->record, sizeof(k->record), "keeper");
}

bool
hr_session_find(struct hr_session *k)
{
	const struct hr_context *ctx = k->ctx;
	struct hr_keeper_args a;

	if (hr_keeper_args_init(&a, ctx, k->name, keeper_dir(k), false, NULL) == 0) {
		k->digest = hr_adopt_digest(a.v);
		hr_adopt_find(&k->adopted, &ctx->run, k->record, k->digest);
	}
	hr_keeper_args_done(&a);
	return k->adopted.pid != 0;
}

static void
adopted_ended(void *arg)
{
	struct hr_session *k = arg;

	hr_watch_drop(&k->adopted_end);
	hr_adopt_done(&k->adopted);
	hr_service_ended(&k->svc);
}

static int
keeper_adopt(struct hr_session *k, struct hr_err *err)
{
	k->adopted_end = hr_loop_readable(k->ctx->loop, k->adopted.pidfd, adopted_ended, k, err);
	if (k->adopted_end == NULL)
		return -1;
	hr_log(HR_LOG_NOTICE, "%s: continuing with the shell of a killed predecessor (process %ld)",
	    k->svc.child.name, (long)k->adopted.pid);
	k->svc.elsewhere = true;
	hr_service_set(&k->svc, HR_SERVICE_READY);
	return 0;
}

/* Gets an end of the store from the previous image, or else from the keeper itself, which some
 * containers forbid. */
static int
store_end(struct hr_session *k, int end)
{
	char name[sizeof(k->name) + 16];
	int fd, type = 0;
	socklen_t len = sizeof(type);

	(void)snprintf(name, sizeof(name), "store/%s/%d", k->name, end);
	fd = hr_handover_take(&k->ctx->handed, name);
	if (fd < 0)
		fd = hr_adopt_fd(&k->adopted, HR_KEEPER_STORE_FD + end);
	if (fd >= 0 &&
	    (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0 || type != SOCK_DGRAM))
		hr_fd_close(&fd);
	return fd;
}

static int
keeper_open_listener(struct hr_session *k, struct hr_err *err)
{
	k->listener = hr_rundir_listen(&k->ctx->run, k->socket, 0, err);
	return k->listener >= 0 ? 0 : -1;
}

static int
keeper_listen(struct hr_session *k, struct hr_err *err)
{
	if (k->listener < 0 && k->adopted.pid != 0) {
		/* otherwise the successor gets a new socket, and waiting connections are lost */
		k->listener = hr_rundir_inherit(&k->ctx->run, k->socket);
		if (k->listener < 0)
			k->listener = hr_pid_listener(k->adopted.pidfd, HR_KEEPER_SOCKET_FD);
		k->store[0] = store_end(k, 0);
		k->store[1] = store_end(k, 1);
		if (k->store[0] < 0 || k->store[1] < 0) {
			store_close(k);
			hr_log(HR_LOG_WARNING,
			    "%s: cannot take over the keeper's descriptors: the shell will be lost "
			    "if "
			    "the keeper is killed",
			    k->svc.child.name);
		}
		return 0;
	}
	return k->listener < 0 ? keeper_open_listener(k, err) : 0;
}

int
hr_session_open(struct hr_session *k, struct hr_err *err)
{
	return hr_service_open(&k->svc, err) == 0 ? keeper_listen(k, err) : -1;
}

int
hr_session_renew(struct hr_session *k, struct hr_err *err)
{
	if (hr_service_ends(&k->svc))
		return 0;
	hr_fd_close(&k->listener);
	if (keeper_open_listener(k, err) < 0)
		return -1;
	k->renewed = k->svc.state == HR_SERVICE_READY;
	hr_child_signal(&k->svc.child, SIGKILL);
	hr_adopt_signal(&k->adopted, SIGKILL);
	return 0;
}

/* Records the keeper before it runs: if this process were killed after the keeper is ready and
 * before it is recorded, no successor would know of it. */
static void
keeper_record(void *arg, pid_t pid)
{
	const struct hr_session *k = arg;
	struct hr_err err = {0};

	if (hr_adopt_record(&k->ctx->run, k->record, pid, k->digest, &err) < 0)
		hr_log(HR_LOG_WARNING, "%s", err.msg);
}

/* Makes the store. Without it a shell ends with its keeper. */
static void
store_open(struct hr_session *k)
{
	if (k->store[0] >= 0)
		return;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, k->store) != 0) {
		k->store[0] = k->store[1] = -1;
		hr_log(HR_LOG_WARNING, "%s: socketpair: %s", k->svc.child.name, strerror(errno));
	}
}

static int
keeper_spawn(struct hr_service *svc, int ready, struct hr_err *err)
{
	struct hr_session *k = keeper_of(svc);
	struct hr_keeper_args a;
	int r = hr_keeper_args_init(&a, k->ctx, k->name, keeper_dir(k), false, err);

	if (r == 0) {
		k->digest = hr_adopt_digest(a.v);
		r = hr_keeper_spawn(k->ctx, &svc->child, &a, ready, k->listener,
		    k->store[0] >= 0 ? k->store : NULL, keeper_record, k, err);
	}
	hr_keeper_args_done(&a);
	return r;
}

int
hr_session_start(struct hr_session *k, struct hr_err *err)
{
	if (k->adopted.pid != 0)
		return keeper_adopt(k, err);
	if (keeper_listen(k, err) < 0)
		return -1;
	store_open(k);
	return hr_service_start(&k->svc, k->ctx->settings.start_timeout * 1000, err);
}

void
hr_session_stop(struct hr_session *k, bool fast)
{
	hr_service_stop(
	    &k->svc, SIGTERM, fast ? 1000 : k->ctx->settings.session_stop_timeout * 1000);
}

int
hr_session_hand_over(const struct hr_session *k, struct hr_handover *h, struct hr_err *err)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (k->store[i] >= 0 &&
		    hr_handover_add(h, k->store[i], err, "store/%s/%d", k->name, i) != 0)
			return -1;
	}
	return k->listener < 0 ? 0 : hr_handover_add(h, k->listener, err, "%s", k->socket);
}

void
hr_session_done(struct hr_session *k)
{
	hr_service_done(&k->svc);
	hr_watch_drop(&k->adopted_end);
	hr_adopt_done(&k->adopted);
	hr_fd_close(&k->listener);
	store_close(k);
}
