/* Runs the nginx process. Invariant: the process group of a former nginx master counts as an orphan
 * until it is empty. */
#include "config.h"

#include "supervisor/edge/nginx.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dir.h"
#include "base/log.h"
#include "base/path.h"
#include "base/process/pid.h"
#include "base/process/spawn.h"
#include "supervisor/edge/nginxconf.h"
#include "supervisor/edge/nginxline.h"
#include "supervisor/run/context.h"

#define LISTEN_FD 3 /* the socket's descriptor in nginx */
#define VIEWER_FD 4
/* upper bound of growth, as a multiple of the settings' connections, and the factor of one step */
#define GROWTH 16
#define GROWTH_STEP 4
#define PROBE_MS 10000
#define OOM_NGINX (-300)

static struct hr_nginx *
nginx_of(const struct hr_service *svc)
{
	return svc->owner;
}

static void
nginx_changed(struct hr_service *svc)
{
	struct hr_context *ctx = nginx_of(svc)->ctx;

	atomic_store(&ctx->board->nginx_pid, svc->child.pid);
	ctx->changed(ctx);
}

static void
nginx_ready(struct hr_service *svc)
{
	struct hr_nginx *n = nginx_of(svc);

	hr_barrier_done(&n->hold);
	if (n->reopen)
		hr_child_signal(&svc->child, SIGUSR1);
	n->reopen = false;
}

static void nginx_answered(void *arg, bool ok, const char *answer);

/* Finds out whether nginx reaches the workers if the port speaks TLS: through the file viewer's
 * port, which uses no TLS and no certificates. */
static void
nginx_ask_worker(struct hr_nginx *n)
{
	const struct hr_context *ctx = n->ctx;
	struct hr_site *s = n->site;
	struct sockaddr_storage to = {.ss_family = AF_INET};
	struct sockaddr_in *in = (struct sockaddr_in *)&to;
	struct hr_err err = {0};

	in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in->sin_port = htons((in_port_t)s->viewer.port);
	n->worker_asked = true;
	if (hr_probe_start(&n->probe, ctx->loop, &to, sizeof(*in), "/", "HTTP/1.1 200", PROBE_MS,
		nginx_answered, n, &err) != 0)
		nginx_answered(n, false, err.msg);
}

static void
nginx_answered(void *arg, bool ok, const char *answer)
{
	struct hr_nginx *n = arg;

	if (n->svc.state != HR_SERVICE_STARTING)
		return;
	if (ok && !n->worker_asked && n->site->viewer.fd >= 0) {
		nginx_ask_worker(n);
		return;
	}
	if (ok) {
		hr_log(HR_LOG_DEBUG, "nginx answers: %s", answer);
	} else {
		hr_log(HR_LOG_ERROR, "the server does not answer handraild's own request: %.120s",
		    answer);
		n->ctx->start_failed(n->ctx, "the server does not answer");
		if (n->svc.state != HR_SERVICE_STARTING) /* nginx is ending by now */
			return;
	}
	/* nginx runs; if a worker fails, its supervision handles that */
	hr_service_ready(&n->svc);
}

static void
nginx_again(struct hr_service *svc)
{
	struct hr_err err = {0};

	if (hr_nginx_start(nginx_of(svc), &err) != 0)
		hr_service_retry(svc, &err);
}

/* Adds an orphan. If there are too many, the oldest is killed. */
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

/* Ends a dead master's workers: they finish their requests and accept no new ones. The supervisor
 * owns the socket, so the next master need not wait for them. */
static void
nginx_orphans(struct hr_nginx *n, pid_t group)
{
	if (kill(-group, SIGQUIT) == 0) /* fails if the group is empty */
		hr_nginx_orphan(n, group);
}

static void
nginx_ended(struct hr_service *svc, const struct hr_exit *how)
{
	struct hr_nginx *n = nginx_of(svc);

	hr_probe_stop(&n->probe);
	hr_barrier_done(&n->hold);
	n->reopen = false;
	if (svc->state != HR_SERVICE_STOPPING || how->killed)
		nginx_orphans(n, how->pid);
}

static void
nginx_lost(struct hr_service *svc, const struct hr_exit *how, bool worked, int64_t delay)
{
	struct hr_context *ctx = nginx_of(svc)->ctx;
	bool held = svc->state == HR_SERVICE_WAITING;

	(void)worked;
	atomic_fetch_add(&ctx->board->metrics.restarts[HR_RESTART_NGINX], 1);
	hr_log(HR_LOG_ERROR, "nginx ended (%s) after %lld ms; it starts again in %lld ms",
	    hr_exit_text(how), (long long)how->age_ms, (long long)delay);
	hr_service_down(svc, HR_SERVICE_DOWN, delay);
	if (held || how->code != 0 || how->killed)
		ctx->start_failed(ctx, "nginx did not start");
}

/* Grows nginx when its connections run out: many are taken, or all and new clients are refused. A
 * new worker process with more connections takes over; the old one ends when its connections are
 * done or time out. */
static void
nginx_grow(struct hr_nginx *n, long long full)
{
	const struct hr_context *ctx = n->ctx;
	struct hr_site *s = n->site;
	long long most = ctx->settings.nginx_connections * GROWTH;
	struct hr_err err = {0};

	if (n->svc.state != HR_SERVICE_READY || full != hr_nginx_connections(s, &ctx->settings) ||
	    full >= most)
		return;
	s->grown = full * GROWTH_STEP < most ? full * GROWTH_STEP : most;
	if (hr_nginx_connections(s, &ctx->settings) == full)
		return; /* the kernel permits no more */
	hr_log(HR_LOG_WARNING, "the %lld connections of nginx run out: raising the limit to %lld",
	    full, hr_nginx_connections(s, &ctx->settings));
	if (hr_nginx_configure(s, &ctx->settings, &s->keys, false, &err) == 0)
		hr_nginx_reload(n);
	else
		hr_log(HR_LOG_ERROR, "nginx: %s", err.msg);
}

/* Masks the file viewer's secret in nginx's errors, which quote the request. */
static void
hide_secret(const struct hr_viewer *v, char *line, size_t len)
{
	size_t n = strlen(v->secret);
	char *p = line;

	while (n > 0 && (p = memmem(p, len - (size_t)(p - line), v->secret, n)) != NULL)
		p = memset(p, '*', n);
}

static int
nginx_line(void *arg, char *line, size_t len, size_t *ret_skip)
{
	int level = hr_nginx_line(line, len, ret_skip);
	long long full = hr_nginx_line_full(line + *ret_skip, len - *ret_skip);

	hide_secret(&nginx_of(arg)->site->viewer, line, len);
	if (full > 0)
		nginx_grow(nginx_of(arg), full);
	return full > 0 && level == HR_LOG_WARNING ? HR_LOG_DEBUG : level;
}

static int
nginx_spawn(struct hr_nginx *n, const char *dir, const char *file, struct hr_err *err)
{
	const struct hr_context *ctx = n->ctx;
	struct hr_site *s = n->site;
	const char *argv[] = {"nginx", "-e", "stderr", "-p", dir, "-c", file, NULL};
	const struct hr_spawn_fd fds[] = {{s->listener, LISTEN_FD}, {s->viewer.fd, VIEWER_FD}};
	char inherit[24], path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
	char *envp[] = {inherit, path, NULL};

	if (s->viewer.fd >= 0)
		(void)snprintf(inherit, sizeof(inherit), "NGINX=%d;%d;", LISTEN_FD, VIEWER_FD);
	else
		(void)snprintf(inherit, sizeof(inherit), "NGINX=%d;", LISTEN_FD);
	/* nginx gets SIGQUIT if the supervisor dies, and then finishes its requests */
	return hr_child_start(&n->svc.child,
	    &(const struct hr_spawn){.path = ctx->settings.nginx,
		.argv = argv,
		.envp = envp,
		.fds = fds,
		.nfds = s->viewer.fd >= 0 ? 2 : 1,
		.setsid = true,
		.pdeathsig = SIGQUIT,
		.umask = 022},
	    OOM_NGINX, err);
}

/* Records the process group for a successor: nginx writes its pid file late, and removes it too
 * early. */
static void
note_group(const struct hr_nginx *n, const char *dir)
{
	char text[24];
	HR_FREE char *path = hr_path_join(dir, "group");
	struct hr_err err = {0};
	int len = snprintf(text, sizeof(text), "%ld\n", (long)n->svc.child.pid);

	if (path == NULL || hr_path_write(path, text, (size_t)len, 0600, &err) != 0)
		hr_log(HR_LOG_WARNING, "cannot record nginx's process group: %s", err.msg);
}

static int
nginx_run(struct hr_nginx *n, struct hr_err *err)
{
	HR_FREE char *dir = hr_rundir_file(&n->ctx->run, "nginx");
	HR_FREE char *file = NULL;
	int r;

	if (dir != NULL)
		file = hr_path_join(dir, "nginx.conf");
	r = file != NULL ? nginx_spawn(n, dir, file, err) : hr_err_nomem(err);
	if (r == 0)
		note_group(n, dir);
	return r;
}

/* Starts nginx; an nginx that is held has a process already. */
static int
nginx_go(struct hr_service *svc, int ready, struct hr_err *err)
{
	struct hr_nginx *n = nginx_of(svc);

	(void)ready;
	return svc->state == HR_SERVICE_WAITING ? hr_barrier_release(&n->hold, err)
						: nginx_run(n, err);
}

static const struct hr_service_ops nginx_ops = {
    .spawn = nginx_go,
    .changed = nginx_changed,
    .ready = nginx_ready,
    .ended = nginx_ended,
    .lost = nginx_lost,
    .again = nginx_again,
};

void
hr_nginx_init(struct hr_nginx *n, struct hr_context *ctx, struct hr_site *site)
{
	memset(n, 0, sizeof(*n));
	n->ctx = ctx;
	n->site = site;
	n->probe.fd = -1;
	hr_barrier_init(&n->hold);
	hr_service_init(&n->svc, &nginx_ops, n, ctx->kids);
	n->svc.child.on_line = nginx_line;
	(void)snprintf(n->svc.child.name, sizeof(n->svc.child.name), "nginx");
}

int
hr_nginx_prepare(struct hr_nginx *n, struct hr_err *err)
{
	HR_FREE char *dir = hr_rundir_file(&n->ctx->run, "nginx");
	struct hr_err why = {0};
	int r = 0;

	if (dir == NULL)
		return hr_err_nomem(err);
	if (hr_barrier_make(&n->hold, dir, &why) != 0) {
		hr_log(HR_LOG_DEBUG, "cannot start nginx early: %s", why.msg);
	} else {
		r = nginx_run(n, err);
		if (r == 0)
			hr_service_move(&n->svc, HR_SERVICE_WAITING);
		else
			hr_barrier_done(&n->hold);
	}
	return r;
}

int
hr_nginx_start(struct hr_nginx *n, struct hr_err *err)
{
	const struct hr_context *ctx = n->ctx;
	struct hr_site *s = n->site;
	struct sockaddr_storage self;
	unsigned i;

	/* new connections wait in the backlog of the supervisor's socket */
	for (i = 0; i < n->norphans; i++)
		(void)kill(-n->orphans[i], SIGQUIT);
	if (hr_service_start(&n->svc, 0, err) != 0)
		return -1;
	hr_listen_self(&s->listen, &self);
	n->worker_asked = ctx->settings.tls_certificate[0] == '\0';
	if (hr_probe_start(&n->probe, ctx->loop, &self, s->listen.len, "/alive",
		n->worker_asked ? "HTTP/1.1 200" : "HTTP/1.1 400", PROBE_MS, nginx_answered, n,
		err) != 0) {
		/* this is odd, but nginx does run */
		hr_log(HR_LOG_WARNING, "handraild cannot check whether the server answers: %s",
		    err->msg);
		hr_service_ready(&n->svc);
	}
	return 0;
}

void
hr_nginx_reload(struct hr_nginx *n)
{
	hr_child_signal(&n->svc.child, SIGHUP);
}

void
hr_nginx_reopen_logs(struct hr_nginx *n)
{
	/* SIGUSR1 would kill a starting nginx, which may have opened the old logs already */
	if (n->svc.state == HR_SERVICE_READY)
		hr_child_signal(&n->svc.child, SIGUSR1);
	else
		n->reopen =
		    n->svc.state == HR_SERVICE_WAITING || n->svc.state == HR_SERVICE_STARTING;
}

void
hr_nginx_stop(struct hr_nginx *n, bool fast)
{
	unsigned i;

	hr_probe_stop(&n->probe);
	for (i = 0; fast && i < n->norphans; i++)
		(void)kill(-n->orphans[i], SIGKILL);
	hr_service_stop(&n->svc, fast ? SIGTERM : SIGQUIT, 0);
}

void
hr_nginx_kill(struct hr_nginx *n)
{
	unsigned i;

	hr_child_signal_group(&n->svc.child, SIGKILL);
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
	return n->svc.state == HR_SERVICE_STOPPED && n->norphans == 0;
}

void
hr_nginx_done(struct hr_nginx *n)
{
	hr_barrier_done(&n->hold);
	hr_probe_stop(&n->probe);
	hr_service_done(&n->svc);
}

void
hr_nginx_quit_group(pid_t master)
{
	static const char title[] = "nginx: ";
	HR_CLOSEDIR DIR *d = opendir("/proc");
	char stat[HR_PID_STAT], line[sizeof(title)];
	pid_t pid;

	while ((pid = hr_pid_next(d)) > 0) {
		if ((pid_t)hr_pid_field(hr_pid_stat(pid, stat), HR_PID_GROUP) != master)
			continue;
		hr_pid_read(pid, "cmdline", line, sizeof(line));
		if (strcmp(line, title) == 0)
			(void)kill(pid, SIGQUIT);
	}
}
