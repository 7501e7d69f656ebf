/* Keepers. Invariant: a session's socket is open from the first start to the very end, so a worker
 * that connects while there is no keeper waits instead of failing. */
#include "config.h"

#include "supervisor/children/session.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "supervisor/children/keeperargs.h"
#include "supervisor/server.h"

static pid_t
keeper_pid(const struct hr_keeper *k)
{
	return k->adopted.pid != 0 ? k->adopted.pid : k->child.pid;
}

static const char *
keeper_dir(const struct hr_keeper *k)
{
	return k->dir != NULL ? k->dir : k->server->settings.working_dir;
}

const char *
hr_keeper_state_name(const struct hr_keeper *k)
{
	switch (k->state) {
	case HR_KEEPER_READY: return "ready";
	case HR_KEEPER_STARTING: return "starting";
	case HR_KEEPER_DOWN: return "restarting";
	case HR_KEEPER_STOPPING:
	case HR_KEEPER_STOPPED: break;
	}
	return "stopping";
}

static void
keeper_signal(const struct hr_keeper *k, int sig)
{
	hr_adopt_signal(&k->adopted, sig);
	hr_child_signal(&k->child, sig);
}

static void
keeper_set(struct hr_keeper *k, enum hr_keeper_state state)
{
	k->state = state;
	k->changed(k);
}

static void
default_changed(struct hr_keeper *k)
{
	atomic_store(&k->server->board->session_pid, keeper_pid(k));
	hr_server_changed(k->server);
}

static void
default_failed(struct hr_keeper *k, const char *why)
{
	hr_server_start_failed(k->server, HR_EXIT_START, why);
}

static void
keeper_ready(void *arg, bool ready, const char *reason)
{
	struct hr_keeper *k = arg;

	if (k->state != HR_KEEPER_STARTING)
		return;
	if (ready) {
		hr_watch_disarm(k->patience);
		k->reason[0] = '\0';
		hr_log(HR_LOG_INFO, "%s: the shell is ready (process %ld)", k->child.name,
		    (long)k->child.pid);
		keeper_set(k, HR_KEEPER_READY);
		return;
	}
	(void)snprintf(k->reason, sizeof(k->reason), "%s", reason);
	hr_log(HR_LOG_ERROR, "%s: the shell did not start: %s", k->child.name, reason);
	k->failed(k, "the shell did not start");
	hr_child_signal(&k->child, SIGTERM); /* its end is the occasion for another start */
}

static void
keeper_start_again(void *arg)
{
	struct hr_keeper *k = arg;
	struct hr_err err = {0};

	if (k->state == HR_KEEPER_DOWN && hr_keeper_start(k, &err) != 0) {
		(void)snprintf(k->reason, sizeof(k->reason), "%s", err.msg);
		hr_log(HR_LOG_ERROR, "%s", err.msg);
		(void)hr_watch_arm(
		    k->restart, hr_backoff_next(&k->backoff, false, 0, hr_now_ms()) + 50, NULL);
	}
}

static void
store_close(struct hr_keeper *k)
{
	hr_fd_close(&k->store[0]);
	hr_fd_close(&k->store[1]);
}

static void
keeper_lost(struct hr_keeper *k, bool was_ours, int64_t age_ms, const char *how)
{
	int64_t delay;

	hr_watch_disarm(k->patience);
	hr_readyline_close(&k->line);
	hr_adopt_forget(&k->server->run, k->record);
	if (k->state == HR_KEEPER_STOPPING) {
		store_close(k); /* the last hold on a shell whose keeper was killed */
		keeper_set(k, HR_KEEPER_STOPPED);
		return;
	}
	atomic_fetch_add(&k->server->board->metrics.restarts[HR_RESTART_SESSION], 1);
	delay = hr_backoff_next(&k->backoff, k->state == HR_KEEPER_READY, age_ms, hr_now_ms());
	hr_log(HR_LOG_ERROR,
	    "%s: the keeper of the shell ended (%s); another one starts in %lld ms", k->child.name,
	    how, (long long)delay);
	if (k->reason[0] == '\0')
		(void)snprintf(k->reason, sizeof(k->reason), "the keeper ended: %s", how);
	keeper_set(k, HR_KEEPER_DOWN);
	if (was_ours) /* an inherited one may have been killed with its supervisor */
		k->failed(k, "the keeper of the shell ended");
	if (k->state == HR_KEEPER_DOWN && hr_watch_arm(k->restart, delay, NULL) != 0)
		hr_log(HR_LOG_ERROR, "no memory for a timer: the shell is not started again");
}

static void
keeper_ended(void *arg, const struct hr_exit *how)
{
	const struct hr_keeper *k = arg;

	if (k->state == HR_KEEPER_STOPPING)
		hr_child_tell_killed(k->child.name, how);
	keeper_lost(arg, true, how->age_ms, hr_exit_text(how));
}

/* Too slow to get ready, or to end. */
static void
keeper_patience_over(void *arg)
{
	struct hr_keeper *k = arg;

	if (k->state == HR_KEEPER_STARTING)
		(void)snprintf(k->reason, sizeof(k->reason), "not ready after %lld s",
		    k->server->settings.start_timeout);
	hr_log(HR_LOG_ERROR, "%s: the keeper of the shell is killed: %s", k->child.name,
	    k->state == HR_KEEPER_STARTING ? k->reason : "it does not end");
	keeper_signal(k, SIGKILL);
}

void
hr_keeper_init(struct hr_keeper *k, struct hr_server *server)
{
	memset(k, 0, sizeof(*k));
	k->server = server;
	k->listener = k->store[0] = k->store[1] = -1;
	k->line.fd = -1;
	k->adopted.pidfd = -1;
	k->child.kids = &server->kids;
	k->child.arg = k;
	k->child.on_exit = keeper_ended;
	k->changed = default_changed;
	k->failed = default_failed;
	(void)snprintf(k->child.name, sizeof(k->child.name), "session");
	(void)snprintf(k->name, sizeof(k->name), "default");
	(void)snprintf(k->socket, sizeof(k->socket), "session.sock");
	(void)snprintf(k->record, sizeof(k->record), "keeper");
}

bool
hr_keeper_find(struct hr_keeper *k)
{
	const struct hr_server *s = k->server;
	struct hr_keeper_args a;

	if (hr_keeper_args_init(&a, s, k->name, keeper_dir(k), false, NULL) == 0) {
		k->digest = hr_adopt_digest(a.v);
		hr_adopt_find(&k->adopted, &s->run, k->record, k->digest);
	}
	hr_keeper_args_done(&a);
	return k->adopted.pid != 0;
}

static void
adopted_ended(void *arg)
{
	struct hr_keeper *k = arg;

	hr_watch_free(k->adopted_end);
	k->adopted_end = NULL;
	hr_adopt_done(&k->adopted);
	keeper_lost(k, false, INT64_MAX, "how, only its first parent could know");
}

static int
keeper_adopt(struct hr_keeper *k, struct hr_err *err)
{
	k->adopted_end = hr_loop_readable(k->server->loop, k->adopted.pidfd, adopted_ended, k, err);
	if (k->adopted_end == NULL)
		return -1;
	hr_log(HR_LOG_NOTICE, "%s: going on with the shell of a killed predecessor (process %ld)",
	    k->child.name, (long)k->adopted.pid);
	keeper_set(k, HR_KEEPER_READY);
	return 0;
}

/* Of the image before us; else of the keeper itself, which not every container allows. */
static int
store_end(struct hr_keeper *k, int end)
{
	struct hr_handover *h = k->server->run.handed;
	char name[sizeof(k->name) + 16];
	int fd, type = 0;
	socklen_t len = sizeof(type);

	(void)snprintf(name, sizeof(name), "store/%s/%d", k->name, end);
	fd = h != NULL ? hr_handover_take(h, name) : -1;
	if (fd < 0)
		fd = hr_adopt_fd(&k->adopted, HR_KEEPER_STORE_FD + end);
	if (fd >= 0 &&
	    (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) != 0 || type != SOCK_DGRAM))
		hr_fd_close(&fd);
	return fd;
}

static int
keeper_listen(struct hr_keeper *k, struct hr_err *err)
{
	if (k->listener < 0 && k->adopted.pid != 0) {
		/* without it the socket of its successor is another one, and what waits is lost */
		k->listener = hr_rundir_inherit(&k->server->run, k->socket);
		if (k->listener < 0)
			k->listener = hr_adopt_socket(&k->adopted, HR_KEEPER_SOCKET_FD);
		k->store[0] = store_end(k, 0);
		k->store[1] = store_end(k, 1);
		if (k->store[0] < 0 || k->store[1] < 0) {
			store_close(k);
			hr_log(HR_LOG_WARNING,
			    "%s: what its keeper keeps cannot be had: if that is killed the shell "
			    "is lost",
			    k->child.name);
		}
		return 0;
	}
	if (k->listener < 0)
		k->listener = hr_rundir_listen(&k->server->run, k->socket, 0, err);
	return k->listener >= 0 ? 0 : -1;
}

int
hr_keeper_open(struct hr_keeper *k, struct hr_err *err)
{
	k->restart = hr_loop_timer(k->server->loop, keeper_start_again, k, err);
	k->patience = hr_loop_timer(k->server->loop, keeper_patience_over, k, err);
	if (k->restart == NULL || k->patience == NULL)
		return -1;
	return keeper_listen(k, err);
}

/* By itself: we might be killed after it is ready and before we noted it, and nobody would know of
 * it then. */
static void
keeper_record_itself(void *arg)
{
	const struct hr_keeper *k = arg;
	struct hr_err err = {0};

	if (hr_adopt_record(&k->server->run, k->record, getpid(), k->digest, &err) != 0)
		hr_log(HR_LOG_WARNING, "%s", err.msg);
}

/* Without it the shell ends with its keeper. */
static void
store_open(struct hr_keeper *k)
{
	if (k->store[0] >= 0)
		return;
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, k->store) != 0) {
		k->store[0] = k->store[1] = -1;
		hr_log(HR_LOG_WARNING, "%s: socketpair: %s", k->child.name, strerror(errno));
	}
}

int
hr_keeper_start(struct hr_keeper *k, struct hr_err *err)
{
	const struct hr_server *s = k->server;
	struct hr_keeper_args a;
	int ready = -1, ok = -1;

	if (k->adopted.pid != 0)
		return keeper_adopt(k, err);
	if (keeper_listen(k, err) != 0)
		return -1;
	store_open(k);
	if (hr_keeper_args_init(&a, s, k->name, keeper_dir(k), false, err) == 0 &&
	    hr_readyline_open(&k->line, s->loop, keeper_ready, k, &ready, err) == 0) {
		k->digest = hr_adopt_digest(a.v);
		ok = hr_keeper_spawn(s, &k->child, &a, ready, k->listener,
		    k->store[0] >= 0 ? k->store : NULL, keeper_record_itself, k, err);
		hr_fd_close(&ready);
	}
	hr_keeper_args_done(&a);
	if (ok != 0) {
		hr_readyline_close(&k->line);
		return -1;
	}
	(void)hr_watch_arm(k->patience, s->settings.start_timeout * 1000, NULL);
	keeper_set(k, HR_KEEPER_STARTING);
	return 0;
}

void
hr_keeper_stop(struct hr_keeper *k, bool fast)
{
	hr_watch_disarm(k->restart);
	hr_watch_disarm(k->patience);
	hr_readyline_close(&k->line);
	if (keeper_pid(k) == 0) {
		k->state = HR_KEEPER_STOPPED;
		return;
	}
	k->state = HR_KEEPER_STOPPING;
	keeper_signal(k, SIGTERM);
	(void)hr_watch_arm(
	    k->patience, fast ? 1000 : k->server->settings.session_stop_timeout * 1000, NULL);
}

int
hr_keeper_hand_over(const struct hr_keeper *k, struct hr_handover *h, struct hr_err *err)
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
hr_keeper_done(struct hr_keeper *k)
{
	hr_watch_free(k->restart);
	hr_watch_free(k->patience);
	hr_watch_free(k->adopted_end);
	k->restart = k->patience = k->adopted_end = NULL;
	hr_adopt_done(&k->adopted);
	hr_readyline_close(&k->line);
	hr_fd_close(&k->listener);
	store_close(k);
}
