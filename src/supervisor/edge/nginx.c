/* nginx. Invariant: the configuration in DIR/nginx/nginx.conf is one that nginx accepted, or the
 * first one of this start. */
#include "config.h"

#include "supervisor/edge/nginx.h"

#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/loop.h"
#include "base/path.h"
#include "base/spawn.h"
#include "supervisor/edge/edge.h"
#include "supervisor/edge/nginxline.h"
#include "supervisor/server.h"
#include "supervisor/edge/template.h"

#define LISTEN_FD 3 /* in nginx */
#define VIEWER_FD 4
#define GROWTH                                                                                     \
	8 /* at most so many times the connections of the settings, when all are taken ...         \
	   */
#define GROWTH_STEP 4 /* ... in steps of this */
#define PROBE_MS 10000
#define OOM_NGINX (-300)
/* Of a head, beyond the kilobyte that nginx reads first: what is passed on of it goes into one
 * record of FastCGI, 65535 bytes with the names of its parts. */
#define HEAD_MAX (62 << 10)

/* ---- configuration ---- */

struct values {
	char numbers[16][24];
	size_t nnumbers;
	struct hr_place v[32];
	size_t n;
	struct hr_buf user, access_log, http, locations, plugins, site, viewer;
	struct hr_edge edge;
};

static void
values_add(struct values *v, const char *name, const char *value, bool whole)
{
	hr_assert(v->n < sizeof(v->v) / sizeof(v->v[0]));
	v->v[v->n++] = (struct hr_place){name, value, whole};
}

static void
values_number(struct values *v, const char *name, long long n)
{
	char *text = v->numbers[v->nnumbers];

	hr_assert(v->nnumbers < sizeof(v->numbers) / sizeof(v->numbers[0]));
	(void)snprintf(text, sizeof(v->numbers[0]), "%lld", n);
	v->nnumbers++;
	values_add(v, name, text, false);
}

/* What the kernel grants; nginx complains about more. */
static long long
connections(const struct hr_nginx *n, const struct hr_settings *c)
{
	long long want = c->nginx_connections > n->grown ? c->nginx_connections : n->grown;
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur != RLIM_INFINITY &&
	    want > (long long)lim.rlim_cur)
		return (long long)lim.rlim_cur;
	return want;
}

static void
values_init(struct values *v, const struct hr_server *s, const struct hr_settings *c)
{
	enum hr_log_level level = HR_LOG_INFO;

	memset(v, 0, sizeof(*v));
	hr_buf_init(&v->user, 256);
	hr_buf_init(&v->access_log, 4096);
	hr_buf_init(&v->http, 65536);
	hr_buf_init(&v->locations, 65536);
	hr_buf_init(&v->plugins, 65536);
	hr_buf_init(&v->site, 1 << 18);
	hr_buf_init(&v->viewer, 65536);
	values_add(v, "run_dir", s->run.path, false);
	values_add(v, "listen", s->listen.text, false);
	values_number(v, "nginx_workers", c->nginx_workers);
	values_number(v, "nginx_connections", connections(&s->nginx, c));
	values_number(v, "client_max_body_bytes", c->client_max_body_bytes);
	values_number(v, "client_header_timeout", c->client_header_timeout);
	values_number(v, "client_body_timeout", c->client_body_timeout);
	values_number(v, "keepalive_timeout", c->keepalive_timeout);
	values_number(v, "fastcgi_timeout", c->fastcgi_timeout);
	values_number(v, "client_send_timeout", c->client_send_timeout);
	values_number(v, "client_max_header_bytes",
	    c->client_max_header_bytes < HEAD_MAX ? c->client_max_header_bytes : HEAD_MAX);
	values_number(v, "viewer_limit", HR_VIEWER_PLACES);
	values_number(v, "action_limit", c->action_workers_max);
	values_number(v, "live_limit", c->live_workers_max);
	(void)hr_log_level_parse(c->log_level, &level); /* was checked */
	/* never "info": there it quotes lines of a client's head that it refuses, with the key */
	values_add(v, "error_level", level == HR_LOG_DEBUG ? "notice" : "warn", false);
}

static int
values_edge(struct values *v, const struct hr_server *s, const struct hr_settings *c,
    const struct hr_keys *keys, struct hr_err *err)
{
	if (hr_edge_compose(&v->edge, c, keys, err) != 0)
		return -1;
	hr_plugins_nginx(&v->plugins, &s->plugins, s->run.path, hr_buf_str(&v->edge.live_limits));
	if (hr_buf_check(&v->plugins, err) != 0)
		return -1;
	values_add(v, "plugins", hr_buf_str(&v->plugins), true);
	values_add(v, "gate", hr_buf_str(&v->edge.gate), true);
	values_add(v, "known_key", hr_buf_str(&v->edge.known_key), true);
	values_add(v, "listen_more", hr_buf_str(&v->edge.listen), true);
	values_add(v, "tls", hr_buf_str(&v->edge.tls), true);
	values_add(v, "limit_zones", hr_buf_str(&v->edge.zones), true);
	values_add(v, "limits", hr_buf_str(&v->edge.limits), true);
	values_add(v, "action_limits", hr_buf_str(&v->edge.action_limits), true);
	values_add(v, "live_limits", hr_buf_str(&v->edge.live_limits), true);
	return 0;
}

static int
fill(struct hr_buf *out, const struct hr_server *s, const char *file, const struct values *v,
    struct hr_err *err)
{
	char *path = hr_path_join(s->datadir, file);
	struct hr_buf text;
	int r;

	if (path == NULL)
		return hr_err_nomem(err);
	hr_buf_init(&text, 65536);
	r = hr_path_read(path, &text, err);
	if (r == 0) {
		r = hr_template_fill(out, hr_buf_str(&text), text.len, v->v, v->n, err);
		if (r != 0)
			hr_err_prefix(err, "%s", path);
	}
	hr_buf_done(&text);
	free(path);
	return r;
}

/* The site holds the other two and the log as whole directives. */
static int
fill_site(struct hr_buf *out, const struct hr_server *s, const struct hr_settings *c,
    struct values *v, struct hr_err *err)
{
	if (strcmp(c->access_log, "off") != 0) {
		const struct hr_place path = {"access_log", c->access_log, false};

		if (hr_template_fill(&v->access_log, "access_log @access_log@ handrail;", 33, &path,
			1, err) != 0)
			return -1;
	}
	values_add(v, "access_log", hr_buf_str(&v->access_log), true);
	if (s->viewer.fd >= 0) {
		values_number(v, "viewer_port", s->viewer.port);
		if (fill(&v->viewer, s, "handrail-viewer.conf.in", v, err) != 0)
			return -1;
	}
	values_add(v, "viewer", hr_buf_str(&v->viewer), true);
	if (fill(&v->http, s, "handrail-http.conf.in", v, err) != 0 ||
	    fill(&v->locations, s, "handrail-locations.conf.in", v, err) != 0)
		return -1;
	values_add(v, "http", hr_buf_str(&v->http), true);
	values_add(v, "locations", hr_buf_str(&v->locations), true);
	return fill(out, s, "handrail-site.conf.in", v, err);
}

/* nginx.conf holds the site and the account. */
static int
fill_all(struct hr_buf *out, const struct hr_server *s, const struct hr_settings *c,
    struct values *v, struct hr_err *err)
{
	if (s->id.nginx_user != NULL)
		hr_buf_addf(&v->user, "user %s %s;", s->id.nginx_user, s->id.nginx_group);
	if (hr_buf_check(&v->user, err) != 0 || fill_site(&v->site, s, c, v, err) != 0)
		return -1;
	values_add(v, "user", hr_buf_str(&v->user), true);
	values_add(v, "site", hr_buf_str(&v->site), true);
	return fill(out, s, "nginx.conf.in", v, err);
}

int
hr_nginx_compose(struct hr_buf *out, const char *part, const struct hr_server *s,
    const struct hr_settings *c, const struct hr_keys *keys, struct hr_err *err)
{
	struct values v;
	int r;

	values_init(&v, s, c);
	if (values_edge(&v, s, c, keys, err) != 0)
		r = -1;
	else if (strcmp(part, "http") == 0)
		r = fill(out, s, "handrail-http.conf.in", &v, err);
	else if (strcmp(part, "server") == 0)
		r = fill(out, s, "handrail-locations.conf.in", &v, err);
	else if (strcmp(part, "site") == 0)
		r = fill_site(out, s, c, &v, err);
	else
		r = fill_all(out, s, c, &v, err);
	hr_edge_done(&v.edge);
	hr_buf_done(&v.user);
	hr_buf_done(&v.access_log);
	hr_buf_done(&v.http);
	hr_buf_done(&v.locations);
	hr_buf_done(&v.plugins);
	hr_buf_done(&v.site);
	hr_buf_done(&v.viewer);
	return r;
}

static int
test_file(const struct hr_settings *c, const char *dir, const char *file, struct hr_err *err)
{
	const char *argv[] = {c->nginx, "-t", "-q", "-e", "stderr", "-p", dir, "-c", file, NULL};
	char said[sizeof(err->msg)];
	int status = hr_spawn_wait(argv, said, sizeof(said), err);

	if (status < 0)
		return -1;
	said[strcspn(said, "\n")] = '\0';
	return status == 0
		   ? 0
		   : hr_err_set(err, HR_E_INVAL, "nginx refuses its configuration: %s", said);
}

static int
compose_file(struct hr_buf *out, const struct hr_server *s, const struct hr_settings *c,
    const struct hr_keys *keys, struct hr_err *err)
{
	if (hr_nginx_compose(out, "all", s, c, keys, err) != 0)
		return -1;
	hr_buf_adds(out, HR_HOLD_LINE);
	return hr_buf_check(out, err);
}

int
hr_nginx_configure(const struct hr_server *s, const struct hr_settings *c,
    const struct hr_keys *keys, bool test, struct hr_err *err)
{
	char *dir = hr_rundir_file(&s->run, "nginx"), *file = NULL, *fresh = NULL;
	struct hr_buf text;
	int r = -1;

	hr_buf_init(&text, 1 << 18);
	if (dir != NULL) {
		file = hr_path_join(dir, "nginx.conf");
		fresh = hr_path_join(dir, "nginx.conf.new");
	}
	if (file == NULL || fresh == NULL)
		(void)hr_err_nomem(err);
	else if (compose_file(&text, s, c, keys, err) == 0 &&
		 hr_path_write(fresh, hr_buf_str(&text), text.len, 0600, err) == 0 &&
		 (!test || test_file(c, dir, fresh, err) == 0))
		r = rename(fresh, file) == 0 ? 0 : hr_err_sys(err, errno, "%s", file);
	if (r != 0 && fresh != NULL)
		(void)unlink(fresh);
	hr_buf_done(&text);
	free(dir);
	free(file);
	free(fresh);
	return r;
}

/* ---- the process ---- */

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

	if (n->state != HR_NGINX_UP || full != connections(n, &s->settings) || full >= most)
		return;
	n->grown = full * GROWTH_STEP < most ? full * GROWTH_STEP : most;
	if (connections(n, &s->settings) == full)
		return; /* the kernel grants no more */
	hr_log(HR_LOG_WARNING, "the %lld connections of nginx are taken: it gets %lld", full,
	    connections(n, &s->settings));
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
