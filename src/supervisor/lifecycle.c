/* Runs a server through its life as one sequence of stages. Parts report changes; only this file
 * decides the consequences. */
#include "config.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/log.h"
#include "base/loop.h"
#include "base/path.h"
#include "supervisor/ready.h"
#include "supervisor/run/journaldir.h"
#include "supervisor/server.h"

#define STRAYS_TERM_MS 1000 /* ms until SIGKILL, for leftover processes of commands */
/* ms after which a leftover process is left alone: a setuid program of another user */
#define STRAYS_KILL_MS 2000
/* ms between readiness and the start of the rest, which a sandbox with a short life never needs; a
 * pool that needs more workers starts them itself */
#define REST_MS 2000
#define EDGE_FAST_MS 2000 /* ms for nginx to end after SIGTERM */

static void end_press(struct hr_server *s);
static void server_changed(struct hr_server *s);

static void
stage_set(struct hr_server *s, enum hr_server_stage stage)
{
	hr_assert(stage > s->stage);
	s->stage = stage;
	s->again = true;
	hr_watch_disarm(s->patience);
}

static bool
pools_all(const struct hr_server *s, bool (*is)(const struct hr_pool *p))
{
	unsigned i;

	for (i = 0; i < HR_POOLS; i++) {
		if (!is(&s->pools.v[i]))
			return false;
	}
	return true;
}

/* ---- starting ---- */

/* Starts workers that the first responses do not need. */
static void
start_rest(struct hr_server *s)
{
	unsigned i;

	s->pools.staged = false;
	for (i = 0; i < HR_POOLS; i++)
		hr_pool_complete(&s->pools.v[i]);
}

/* Opens the port, once everything that serves it responds. */
static void
open_port(struct hr_server *s)
{
	struct hr_err err = {0};
	unsigned i;

	atomic_store(&s->ctx.board->ready, 1); /* /alive reports readiness from now on */
	if (hr_listen_start(s->site.listener, &s->site.listen, &err) < 0) {
		hr_server_start_failed(
		    s, err.code == HR_E_BUSY ? HR_EXIT_REFUSED : HR_EXIT_START, err.msg);
		return;
	}
	if (hr_nginx_start(&s->nginx, &err) < 0) {
		hr_server_start_failed(s, HR_EXIT_START, err.msg);
		return;
	}
	if (!s->pools.staged)
		return;
	/* the pool for the first action is filled while nginx starts */
	hr_pool_fill(&s->pools.v[HR_POOL_ACTION]);
	for (i = 0; i < HR_POOLS; i++)
		hr_pool_start_on_demand(&s->pools.v[i]);
}

/* Repairs the run directory; running parts are replaced or renewed. */
static void
run_directory_damaged(void *arg, const char *path)
{
	struct hr_server *s = arg;
	struct hr_err err = {0};
	unsigned i;

	if (s->stage != HR_SERVER_RUNNING)
		return;
	hr_log(HR_LOG_ERROR, "%s was removed or damaged: starting again in place", path);
	if (hr_rundir_restore(&s->ctx.run, &err) < 0 || hr_journaldir_choose(&s->ctx, &err) < 0 ||
	    hr_journaldir_make(s->ctx.journal, &err) < 0 ||
	    hr_path_mkdirs(s->ctx.settings.working_dir, 0755, NULL, &err) < 0 ||
	    (s->ctx.settings.start_nginx &&
		hr_nginx_configure(&s->site, &s->ctx.settings, &s->site.keys, false, &err) < 0) ||
	    hr_session_renew(&s->session, &err) < 0) {
		hr_log(HR_LOG_ERROR, "the run directory cannot be restored: %s", err.msg);
		return;
	}
	hr_sessions_renew(&s->sessions);
	for (i = 0; i < HR_POOLS; i++) /* running workers may have lost their journal */
		hr_pool_recycle(&s->pools.v[i]);
	s->upgrade = true;
	server_changed(s);
}

/* Opens the guard: only commands of the server's own account can remove its files. */
static void
open_guard(struct hr_server *s)
{
	struct hr_err err = {0};

	if (s->ctx.id.shell_uid != geteuid() ||
	    hr_guard_open(&s->guard, &s->ctx, run_directory_damaged, s, &err) == 0)
		return;
	hr_log(HR_LOG_INFO, "the run directory cannot be watched for damage: %s", err.msg);
	hr_guard_close(&s->guard);
}

static void
step_starting(struct hr_server *s)
{
	unsigned i;

	if (s->session.svc.state != HR_SERVICE_READY || !hr_plugins_settled(&s->plugins))
		return;
	if (s->ctx.settings.start_nginx && s->nginx.svc.state != HR_SERVICE_STARTING &&
	    s->nginx.svc.state != HR_SERVICE_READY) {
		open_port(s);
		return;
	}
	if (s->ctx.settings.start_nginx && s->nginx.svc.state != HR_SERVICE_READY)
		return;
	stage_set(s, HR_SERVER_RUNNING);
	open_guard(s);
	atomic_store(&s->ctx.board->ready, 1);
	for (i = 0; i < HR_POOLS; i++)
		hr_pool_relieve(&s->pools.v[i]);
	if (s->ctx.settings.start_nginx)
		hr_log(HR_LOG_NOTICE, "ready: listening on %s", s->site.listen.text);
	else
		hr_log(HR_LOG_NOTICE, "ready: FastCGI sockets in %s/fcgi", s->ctx.run.path);
	hr_notify_send(&s->notify, "READY=1\nSTATUS=listening on %s\n",
	    s->ctx.settings.start_nginx ? s->site.listen.text : s->ctx.run.path);
#ifdef __GLIBC__
	(void)malloc_trim(0); /* frees the memory that the settings and the configuration took */
#endif
	/* otherwise the other workers would take CPU time from the first responses */
	if (s->pools.staged && hr_watch_arm(s->patience, REST_MS, NULL) != 0)
		start_rest(s);
}

/* ---- ending ---- */

static void
stop_workers(struct hr_server *s)
{
	unsigned i;

	for (i = 0; i < HR_POOLS; i++)
		hr_pool_stop(&s->pools.v[i], s->urgency > 0);
}

static void
stop_strays(struct hr_server *s)
{
	if (hr_children_signal_all(SIGTERM) == 0 || s->patience == NULL ||
	    hr_watch_arm(s->patience, STRAYS_TERM_MS, NULL) != 0)
		stage_set(s, HR_SERVER_ENDED);
}

static void
arm_stop_timeout(struct hr_server *s)
{
	if (s->ctx.settings.stop_timeout > 0 && s->patience != NULL)
		(void)hr_watch_arm(s->patience, s->ctx.settings.stop_timeout * 1000, NULL);
}

/* Cuts requests that no worker can take. */
static void
press_for_nobody(struct hr_server *s)
{
	unsigned i;

	for (i = 0; i < HR_POOLS && s->urgency == 0; i++) {
		if (!hr_service_failing(&s->pools.v[i].svc))
			continue;
		hr_log(HR_LOG_WARNING,
		    "pool %s takes no requests: closing the connections that wait for it",
		    s->pools.v[i].name);
		end_press(s);
	}
}

static void
step_ending(struct hr_server *s)
{
	switch (s->stage) {
	case HR_SERVER_ENDING_EDGE:
		if (!hr_nginx_gone(&s->nginx)) {
			press_for_nobody(s);
			return;
		}
		stage_set(s, HR_SERVER_ENDING_WORKERS);
		arm_stop_timeout(s);
		stop_workers(s);
		return;
	case HR_SERVER_ENDING_WORKERS:
		if (!pools_all(s, hr_pool_gone))
			return;
		stage_set(s, HR_SERVER_ENDING_SESSIONS);
		hr_session_stop(&s->session, s->urgency > 0);
		hr_sessions_stop(&s->sessions, s->urgency > 0);
		hr_static_sessions_stop(&s->static_sessions, s->urgency > 0);
		hr_plugins_stop(&s->plugins, s->urgency > 0);
		return;
	case HR_SERVER_ENDING_SESSIONS:
		if (s->session.svc.state != HR_SERVICE_STOPPED || !hr_sessions_gone(&s->sessions) ||
		    !hr_static_sessions_gone(&s->static_sessions) || !hr_plugins_gone(&s->plugins))
			return;
		stage_set(s, HR_SERVER_ENDING_STRAYS);
		stop_strays(s);
		return;
	case HR_SERVER_ENDING_STRAYS:
		if (hr_children_signal_all(0) == 0)
			stage_set(s, HR_SERVER_ENDED);
		return;
	default: hr_loop_stop(s->ctx.loop); return;
	}
}

static void
step_running(struct hr_server *s)
{
	atomic_store(&s->ctx.board->ready, hr_ready_now(s) ? 1 : 0);
	if (s->upgrade && hr_reexec_may(s))
		hr_reexec_soon(s);
}

/* Advances the stage after an event that it may wait for. */
static void
server_changed(struct hr_server *s)
{
	s->again = true;
	if (s->advancing) /* this is a nested call */
		return;
	s->advancing = true;
	while (s->again) {
		s->again = false;
		if (s->stage == HR_SERVER_STARTING)
			step_starting(s);
		else if (s->stage > HR_SERVER_RUNNING)
			step_ending(s);
		else
			step_running(s);
	}
	s->advancing = false;
}

static void
end_begin(struct hr_server *s)
{
	/* no request exists before the port is open */
	if (s->stage == HR_SERVER_STARTING)
		s->urgency = 1;
	stage_set(s, HR_SERVER_ENDING_EDGE);
	s->ctx.ending = true;
	atomic_store(&s->ctx.board->ready, 0);
	hr_notify_send(&s->notify, "STOPPING=1\nSTATUS=waiting for running requests\n");
	hr_guard_stop(&s->guard);
	hr_monitor_stop(&s->monitor);
	/* connections are refused from now on */
	hr_listen_close(&s->site.listen, &s->site.listener);
	hr_viewer_close(&s->site.viewer);
	hr_alerts_close(&s->alerts);
	arm_stop_timeout(s);
	if (s->urgency > 0 && s->patience != NULL)
		(void)hr_watch_arm(s->patience, EDGE_FAST_MS, NULL);
	hr_pool_stop(&s->pools.v[HR_POOL_LIVE], s->urgency > 0);
	hr_pool_stop(&s->pools.v[HR_POOL_PAGE], s->urgency > 0);
	hr_nginx_stop(&s->nginx, s->urgency > 0);
	hr_plugins_stop_http(
	    &s->plugins); /* nginx waits for its streams, which never end by themselves */
	server_changed(s);
}

static void
strays_press(struct hr_server *s)
{
	unsigned left = hr_children_signal_all(SIGKILL);

	if (left > 0 && !s->strays_killed && s->patience != NULL &&
	    hr_watch_arm(s->patience, STRAYS_KILL_MS, NULL) == 0) {
		s->strays_killed = true;
		return;
	}
	if (left > 0)
		hr_log(HR_LOG_WARNING, "%u processes of the server did not end, even by SIGKILL",
		    left);
	stage_set(s, HR_SERVER_ENDED);
}

/* Speeds up the present stage. */
static void
end_press(struct hr_server *s)
{
	s->urgency++;
	switch (s->stage) {
	case HR_SERVER_ENDING_EDGE:
		hr_nginx_stop(&s->nginx, true);
		if (s->urgency > 1 || s->patience == NULL ||
		    hr_watch_arm(s->patience, EDGE_FAST_MS, NULL) != 0)
			hr_nginx_kill(&s->nginx);
		break;
	case HR_SERVER_ENDING_WORKERS: stop_workers(s); break;
	case HR_SERVER_ENDING_SESSIONS:
		hr_session_stop(&s->session, true);
		hr_sessions_stop(&s->sessions, true);
		hr_static_sessions_stop(&s->static_sessions, true);
		hr_plugins_stop(&s->plugins, true);
		if (s->urgency > 1)
			(void)hr_children_signal_all(SIGKILL);
		break;
	case HR_SERVER_ENDING_STRAYS: strays_press(s); break;
	default: break;
	}
	server_changed(s);
}

static void
patience_over(void *arg)
{
	struct hr_server *s = arg;

	if (s->stage == HR_SERVER_RUNNING) {
		start_rest(s);
		return;
	}
	if (s->stage != HR_SERVER_ENDING_STRAYS)
		hr_log(HR_LOG_WARNING,
		    "the time to stop is over: cutting the requests that still run");
	end_press(s);
}

void
hr_server_stop(struct hr_server *s, int signo)
{
	if (s->stage <= HR_SERVER_RUNNING) {
		s->exit_signal = signo;
		hr_log(HR_LOG_NOTICE, "ending (%s)", strsignal(signo));
		end_begin(s);
	} else {
		hr_log(HR_LOG_NOTICE, "ending at once (%s again)", strsignal(signo));
		end_press(s);
	}
}

void
hr_server_start_failed(struct hr_server *s, int status, const char *why)
{
	if (s->stage != HR_SERVER_STARTING)
		return;
	hr_log(HR_LOG_ERROR, "start-up failed: %s", why);
	(void)snprintf(s->failure, sizeof(s->failure), "%s", why);
	s->exit_status = status;
	end_begin(s);
}

static struct hr_server *
server_of(struct hr_context *ctx)
{
	return (struct hr_server *)((char *)ctx - offsetof(struct hr_server, ctx));
}

static void
context_changed(struct hr_context *ctx)
{
	server_changed(server_of(ctx));
}

static void
context_start_failed(struct hr_context *ctx, const char *why)
{
	hr_server_start_failed(server_of(ctx), HR_EXIT_START, why);
}

/* ---- signals ---- */

static void
on_term(void *arg)
{
	hr_server_stop(arg, SIGTERM);
}

static void
on_int(void *arg)
{
	hr_server_stop(arg, SIGINT);
}

static void
on_quit(void *arg)
{
	struct hr_server *s = arg;

	hr_server_stop(s, SIGQUIT);
	if (s->urgency == 0)
		end_press(s);
}

static void
on_hup(void *arg)
{
	hr_server_reload(arg);
}

static void
on_usr1(void *arg)
{
	hr_server_reopen_logs(arg);
}

static void
on_usr2(void *arg)
{
	struct hr_server *s = arg;

	if (s->stage > HR_SERVER_RUNNING) {
		hr_log(HR_LOG_WARNING, "upgrade refused: the server is stopping");
		return;
	}
	/* the upgrade comes as soon as possible: in a starting server, once the server is ready */
	s->upgrade = true;
	hr_alerts_hold(&s->alerts, true);
	server_changed(s);
}

static void
on_child(void *arg)
{
	struct hr_server *s = arg;

	hr_children_reap(&s->kids);
	hr_nginx_check_orphans(&s->nginx);
	server_changed(s);
}

static int
watch_signals(struct hr_server *s, struct hr_err *err)
{
	static const struct {
		int signo;
		hr_watch_fn *fn;
	} table[] = {{SIGCHLD, on_child}, {SIGTERM, on_term}, {SIGINT, on_int}, {SIGQUIT, on_quit},
	    {SIGHUP, on_hup}, {SIGUSR1, on_usr1}, {SIGUSR2, on_usr2}};
	sigset_t none;
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		s->signals[i] = hr_loop_signal(s->ctx.loop, table[i].signo, table[i].fn, s, err);
		if (s->signals[i] == NULL)
			return -1;
	}
	/* signals blocked since main() began arrive now */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	return 0;
}

/* ---- the whole sequence ---- */

static int
start_parts(struct hr_server *s, struct hr_err *err)
{
	bool adopted = s->session.adopted.pid != 0;
	unsigned i;

	s->patience = hr_loop_timer(s->ctx.loop, patience_over, s, err);
	if (s->patience == NULL || watch_signals(s, err) < 0 ||
	    hr_alerts_open(&s->alerts, s->ctx.loop, &s->kids, &s->ctx.settings,
		&s->ctx.board->metrics, (char *const *)hr_strv_list(&s->ctx.child_env), err) < 0 ||
	    hr_session_open(&s->session, err) < 0)
		return -1;
	/* the shell takes longest: prepare everything else while it starts */
	if (!adopted && hr_session_start(&s->session, err) < 0)
		return -1;
	if (hr_plugins_open(&s->plugins, err) < 0)
		return -1;
	hr_plugins_keys(&s->plugins, &s->site.keys);
	if (hr_service_open(&s->nginx.svc, err) < 0)
		return -1;
	hr_nginx_succeed(&s->nginx, &s->ctx.handed);
	/* nginx comes second, and waits at the end for everything else */
	if (s->ctx.settings.start_nginx &&
	    (hr_nginx_configure(&s->site, &s->ctx.settings, &s->site.keys, false, err) < 0 ||
		(!adopted && s->nginx.svc.state == HR_SERVICE_OFF &&
		    hr_nginx_prepare(&s->nginx, err) < 0)))
		return -1;
	for (i = 0; i < HR_POOLS; i++) {
		if (hr_pool_open(&s->pools.v[i], err) < 0)
			return -1;
		hr_pool_adopt(&s->pools.v[i]);
	}
	/* an adopted session is ready at once, which starts nginx */
	if ((adopted && hr_session_start(&s->session, err) < 0) ||
	    hr_sessions_open(&s->sessions, err) < 0)
		return -1;
	hr_server_monitor(s);
	s->pools.staged = s->ctx.settings.start_nginx && !adopted && !s->ctx.relieves;
	hr_handover_done(&s->ctx.handed); /* unused descriptors are closed */
	/* nginx's first request goes to the first pool; other workers would delay the shell */
	if (s->pools.staged)
		hr_pool_fill(&s->pools.v[HR_POOL_CONTROL]);
	else
		start_rest(s);
	hr_plugins_start(&s->plugins);
	return 0;
}

static void
free_parts(struct hr_server *s)
{
	size_t i;

	for (i = 0; i < HR_POOLS; i++)
		hr_pool_close(&s->pools.v[i]);
	hr_nginx_done(&s->nginx);
	hr_plugins_done(&s->plugins);
	hr_static_sessions_done(&s->static_sessions);
	hr_sessions_done(&s->sessions);
	hr_session_done(&s->session);
	hr_monitor_close(&s->monitor);
	hr_alerts_close(&s->alerts);
	hr_guard_close(&s->guard);
	hr_watch_free(s->patience);
	for (i = 0; i < sizeof(s->signals) / sizeof(s->signals[0]); i++)
		hr_watch_free(s->signals[i]);
	hr_reexec_done(&s->reexec);
	hr_loop_free(s->ctx.loop);
	s->ctx.loop = NULL;
}

void
hr_server_init(struct hr_server *s)
{
	memset(s, 0, sizeof(*s));
	s->ctx.board_fd = s->log_fd = s->notify.fd = s->ctx.run.lock = -1;
	s->ctx.kids = &s->kids;
	s->ctx.changed = context_changed;
	s->ctx.start_failed = context_start_failed;
	hr_loglines_init(&s->log_lines);
	hr_monitor_init(&s->monitor);
	hr_guard_init(&s->guard);
	hr_session_init(&s->session, &s->ctx);
	hr_sessions_init(&s->sessions, &s->ctx, &s->pools);
	hr_static_sessions_init(&s->static_sessions, &s->ctx, &s->pools);
	hr_plugins_init(&s->plugins, &s->ctx);
	hr_site_init(&s->site, &s->ctx, &s->plugins);
	hr_nginx_init(&s->nginx, &s->ctx, &s->site);
	hr_pools_init(&s->pools, &s->ctx, hr_server_request, s);
}

int
hr_server_run(struct hr_server *s, struct hr_err *err)
{
	int r;

	s->ctx.loop = hr_loop_new(err);
	if (s->ctx.loop == NULL)
		return -1;
	hr_children_init(&s->kids, s->ctx.loop);
	if (start_parts(s, err) < 0)
		hr_server_start_failed(s, HR_EXIT_START, err->msg);
	server_changed(s);
	r = hr_loop_run(s->ctx.loop, err);
	free_parts(s);
	/* the message is repeated, since people often see only a log's end */
	if (s->failure[0] != '\0')
		hr_server_log_failure(s, "handraild exits without having started: ", s->failure);
	return r;
}
