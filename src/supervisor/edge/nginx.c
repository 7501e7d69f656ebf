/* The process of nginx. Invariant: groups of masters that are not our child are orphans, as long as
 * somebody is in them. */
#include "config.h"

#include "supervisor/edge/nginx.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/path.h"
#include "base/spawn.h"
#include "supervisor/edge/nginxconf.h"
#include "supervisor/edge/nginxline.h"
#include "supervisor/server.h"

#define LISTEN_FD 3 /* in nginx */
#define VIEWER_FD 4
#define GROWTH                                                                                     \
	8 /* at most so many times the connections of the settings, when all are taken ...         \
	   */
#define GROWTH_STEP 4 /* ... in steps of this */
#define PROBE_MS 10000
#define OOM_NGINX (-300)

static void
nginx_set(struct hr_nginx *n, enum hr_nginx_state state)
{
	n->state = state;
	atomic_store(&n->server->board->nginx_pid, n->child.pid);
	hr_server_changed(n->server);
}

static void
nginx_up(struct hr_nginx *n)
{
	hr_hold_done(&n->hold);
	if (n->reopen)
		hr_child_signal(&n->child, SIGUSR1);
	n->reopen = false;
	nginx_set(n, HR_NGINX_UP);
}

static void nginx_answered(void *arg, bool ok, const char *answer);

/* Whether it reaches the workers, where the port speaks TLS: by the file viewer's, which does not
 * and asks for no certificate. */
static void
nginx_ask_worker(struct hr_nginx *n)
{
	const struct hr_server *s = n->server;
	struct sockaddr_storage to = {.ss_family = AF_INET};
	struct sockaddr_in *in = (struct sockaddr_in *)&to;
	struct hr_err err = {0};

	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in->sin_port = htons((in_port_t)s->viewer.port);
	n->worker_asked = true;
	if (hr_probe_start(&n->probe, s->loop, &to, sizeof(*in), "/", "HTTP/1.1 200", PROBE_MS,
		nginx_answered, n, &err) != 0)
		nginx_answered(n, false, err.msg);
}

static void
nginx_answered(void *arg, bool ok, const char *answer)
{
	struct hr_nginx *n = arg;

	if (n->state != HR_NGINX_STARTING)
		return;
	if (ok && !n->worker_asked && n->server->viewer.fd >= 0) {
		nginx_ask_worker(n);
		return;
	}
	if (ok) {
		hr_log(HR_LOG_DEBUG, "nginx answers: %s", answer);
	} else {
		hr_log(HR_LOG_ERROR, "the server does not answer its own question: %.120s", answer);
		hr_server_start_failed(n->server, HR_EXIT_START, "the server does not answer");
		if (n->state != HR_NGINX_STARTING) /* it is being ended */
			return;
	}
	/* it runs; what may be wrong is with a worker, and that is watched */
	nginx_up(n);
}

static void
nginx_start_again(void *arg)
{
	struct hr_nginx *n = arg;
	struct hr_err err = {0};

	if (n->state == HR_NGINX_DOWN && hr_nginx_start(n, &err) != 0) {
		hr_log(HR_LOG_ERROR, "nginx: %s", err.msg);
		(void)hr_watch_arm(
		    n->restart, hr_backoff_next(&n->backoff, false, 0, hr_now_ms()) + 50, NULL);
	}
}

/* Where there are too many, who has been at it longest is cut. */
void
hr_nginx_orphan(struct hr_nginx *n, pid_t group)
{
	if (n->norphans == HR_NGINX_ORPHANS) {
		(void)kill(-n->orphans[0], SIGKILL);
		memmove(n->orphans, n->orphans + 1, sizeof(n->orphans) - sizeof(n->orphans[0]));
		n->norphans--;
	}
	n->orphans[n->norphans++] = group;
}

/* The workers of a dead master go on with their requests and take no new ones; ours is the socket,
 * so the next master need not wait for them. */
static void
nginx_orphans(struct hr_nginx *n, pid_t group)
{
	if (kill(-group, SIGQUIT) == 0) /* else nobody is left in it */
		hr_nginx_orphan(n, group);
}

static void
nginx_ended(void *arg, const struct hr_exit *how)
{
	struct hr_nginx *n = arg;
	bool held = n->state == HR_NGINX_HELD;
	int64_t delay;

	hr_probe_stop(&n->probe);
	hr_hold_done(&n->hold);
	n->reopen = false;
	if (n->state == HR_NGINX_STOPPING) {
		hr_child_tell_killed("nginx", how);
		if (how->killed)
			nginx_orphans(n, how->pid);
		nginx_set(n, HR_NGINX_STOPPED);
		return;
	}
	atomic_fetch_add(&n->server->board->metrics.restarts[HR_RESTART_NGINX], 1);
	delay = hr_backoff_next(&n->backoff, n->state == HR_NGINX_UP, how->age_ms, hr_now_ms());
	hr_log(HR_LOG_ERROR, "nginx ended (%s) after %lld ms; it starts again in %lld ms",
	    hr_exit_text(how), (long long)how->age_ms, (long long)delay);
	nginx_orphans(n, how->pid);
	nginx_set(n, HR_NGINX_DOWN);
	if (held || how->code != 0 || how->killed)
		hr_server_start_failed(n->server, HR_EXIT_START, "nginx did not start");
	if (n->state != HR_NGINX_DOWN)
		return;
	if (delay == 0)
		nginx_start_again(n);
	else if (hr_watch_arm(n->restart, delay, NULL) != 0)
		hr_log(HR_LOG_ERROR, "no memory for a timer: nginx is not started again");
}

/* Somebody holds all connections, and new clients are refused. Another worker process with more
 * takes over; this one ends when those that it has are done or have had their time. */
static void
nginx_grow(struct hr_nginx *n, long long full)
{
	const struct hr_server *s = n->server;
	long long most = s->settings.nginx_connections * GROWTH;
	struct hr_err err = {0};

	if (n->state != HR_NGINX_UP || full != hr_nginx_connections(n, &s->settings) ||
	    full >= most)
		return;
	n->grown = full * GROWTH_STEP < most ? full * GROWTH_STEP : most;
	if (hr_nginx_connections(n, &s->settings) == full)
		return; /* the kernel grants no more */
	hr_log(HR_LOG_WARNING, "the %lld connections of nginx are taken: it gets %lld", full,
	    hr_nginx_connections(n, &s->settings));
	if (hr_nginx_configure(s, &s->settings, &s->keys, false, &err) == 0)
		hr_nginx_reload(n);
	else
		hr_log(HR_LOG_ERROR, "nginx: %s", err.msg);
}

static int
nginx_line(void *arg, const char *line, size_t len, size_t *ret_skip)
{
	int level = hr_nginx_line(line, len, ret_skip);
	long long full = hr_nginx_line_full(line + *ret_skip, len - *ret_skip);

	if (full > 0)
		nginx_grow(arg, full);
	return level;
}

void
hr_nginx_init(struct hr_nginx *n, struct hr_server *server)
{
	memset(n, 0, sizeof(*n));
	n->server = server;
	n->probe.fd = -1;
	hr_hold_init(&n->hold);
	n->child.kids = &server->kids;
	n->child.arg = n;
	n->child.on_exit = nginx_ended;
	n->child.on_line = nginx_line;
	(void)snprintf(n->child.name, sizeof(n->child.name), "nginx");
}

static int
nginx_spawn(struct hr_nginx *n, const char *dir, const char *file, struct hr_err *err)
{
	const struct hr_server *s = n->server;
	const char *argv[] = {"nginx", "-e", "stderr", "-p", dir, "-c", file, NULL};
	const struct hr_spawn_fd fds[] = {{s->listener, LISTEN_FD}, {s->viewer.fd, VIEWER_FD}};
	char inherit[24], path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
	char *envp[] = {inherit, path, NULL};

	if (s->viewer.fd >= 0)
		(void)snprintf(inherit, sizeof(inherit), "NGINX=%d;%d;", LISTEN_FD, VIEWER_FD);
	else
		(void)snprintf(inherit, sizeof(inherit), "NGINX=%d;", LISTEN_FD);
	/* without us nobody would restart it: it ends in order, its requests are answered */
	return hr_child_start(&n->child,
	    &(const struct hr_spawn){.path = s->settings.nginx,
		.argv = argv,
		.envp = envp,
		.fds = fds,
		.nfds = s->viewer.fd >= 0 ? 2 : 1,
		.setsid = true,
		.pdeathsig = SIGQUIT,
		.umask = 022},
	    OOM_NGINX, err);
}

/* For a successor. nginx's own file comes late and goes before its last worker. */
static void
note_group(const struct hr_nginx *n, const char *dir)
{
	char *path = hr_path_join(dir, "group"), text[24];
	struct hr_err err = {0};
	int len = snprintf(text, sizeof(text), "%ld\n", (long)n->child.pid);

	if (path == NULL || hr_path_write(path, text, (size_t)len, 0600, &err) != 0)
		hr_log(HR_LOG_WARNING, "nginx's group is not noted: %s", err.msg);
	free(path);
}

static int
nginx_run(struct hr_nginx *n, struct hr_err *err)
{
	const struct hr_server *s = n->server;
	char *dir = hr_rundir_file(&s->run, "nginx"), *file = NULL;
	int r = -1;

	if (n->restart == NULL)
		n->restart = hr_loop_timer(s->loop, nginx_start_again, n, err);
	if (dir != NULL)
		file = hr_path_join(dir, "nginx.conf");
	if (file == NULL)
		(void)hr_err_nomem(err);
	else if (n->restart != NULL)
		r = nginx_spawn(n, dir, file, err);
	if (r == 0)
		note_group(n, dir);
	free(dir);
	free(file);
	return r;
}

int
hr_nginx_prepare(struct hr_nginx *n, struct hr_err *err)
{
	char *dir = hr_rundir_file(&n->server->run, "nginx");
	struct hr_err why = {0};
	int r = 0;

	if (dir == NULL)
		return hr_err_nomem(err);
	if (hr_hold_make(&n->hold, dir, &why) != 0) {
		hr_log(HR_LOG_DEBUG, "nginx is not started before all else: %s", why.msg);
	} else {
		r = nginx_run(n, err);
		if (r == 0)
			n->state = HR_NGINX_HELD;
		else
			hr_hold_done(&n->hold);
	}
	free(dir);
	return r;
}

int
hr_nginx_start(struct hr_nginx *n, struct hr_err *err)
{
	const struct hr_server *s = n->server;
	struct sockaddr_storage self;
	unsigned i;

	/* who connects from now on waits in the queue of the socket, which is ours, too */
	for (i = 0; i < n->norphans; i++)
		(void)kill(-n->orphans[i], SIGQUIT);
	if (n->state == HR_NGINX_HELD ? hr_hold_release(&n->hold, err) != 0
				      : nginx_run(n, err) != 0)
		return -1;
	n->state = HR_NGINX_STARTING;
	hr_listen_self(&s->listen, &self);
	n->worker_asked = s->settings.tls_certificate[0] == '\0';
	if (hr_probe_start(&n->probe, s->loop, &self, s->listen.len, "/alive",
		n->worker_asked ? "HTTP/1.1 200" : "HTTP/1.1 400", PROBE_MS, nginx_answered, n,
		err) != 0) {
		/* a machine where one cannot reach oneself is odd, but nginx does run */
		hr_log(HR_LOG_WARNING, "the server cannot ask itself whether it answers: %s",
		    err->msg);
		nginx_up(n);
	}
	return 0;
}

void
hr_nginx_reload(struct hr_nginx *n)
{
	hr_child_signal(&n->child, SIGHUP);
}

void
hr_nginx_reopen_logs(struct hr_nginx *n)
{
	/* it would die of it before it has begun, and its logs may be the old ones already */
	if (n->state == HR_NGINX_UP)
		hr_child_signal(&n->child, SIGUSR1);
	else
		n->reopen = n->state == HR_NGINX_HELD || n->state == HR_NGINX_STARTING;
}

void
hr_nginx_stop(struct hr_nginx *n, bool fast)
{
	unsigned i;

	hr_watch_disarm(n->restart);
	hr_probe_stop(&n->probe);
	for (i = 0; fast && i < n->norphans; i++)
		(void)kill(-n->orphans[i], SIGKILL);
	if (n->child.pid == 0) {
		n->state = HR_NGINX_STOPPED;
		return;
	}
	n->state = HR_NGINX_STOPPING;
	hr_child_signal(&n->child, fast ? SIGTERM : SIGQUIT);
}

void
hr_nginx_kill(struct hr_nginx *n)
{
	unsigned i;

	hr_child_signal_group(&n->child, SIGKILL);
	for (i = 0; i < n->norphans; i++)
		(void)kill(-n->orphans[i], SIGKILL);
}

void
hr_nginx_check_orphans(struct hr_nginx *n)
{
	unsigned i, kept = 0;

	for (i = 0; i < n->norphans; i++) {
		if (kill(-n->orphans[i], 0) == 0)
			n->orphans[kept++] = n->orphans[i];
	}
	n->norphans = kept;
}

bool
hr_nginx_gone(const struct hr_nginx *n)
{
	return n->state == HR_NGINX_STOPPED && n->norphans == 0;
}

void
hr_nginx_done(struct hr_nginx *n)
{
	hr_hold_done(&n->hold);
	hr_probe_stop(&n->probe);
	hr_watch_free(n->restart);
	n->restart = NULL;
}
