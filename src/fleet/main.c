/* handrail-fleetd: provides sandboxes as a service, on one machine. See handrail-fleetd(8). It may
 * be killed at any moment: decisions are in the store, and the next process continues. An orderly
 * exit therefore does the same. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/process/spawn.h"
#include "base/text/text.h"
#include "fleet/api/api.h"
#include "fleet/doctor.h"
#include "fleet/edge.h"
#include "fleet/engine.h"
#include "fleet/fleet.h"
#include "fleet/options.h"
#include "fleet/serve.h"
#include "fleet/upgrade.h"
#include "host/common/exam.h"

#define NGINX_AGAIN_MS 200
#define LEAVE_S 10
#define THREADS 64

/* ---- parts ---- */

static int
fail(const struct hr_err *err)
{
	(void)fprintf(stderr, "handrail-fleetd: %s\n", err->msg);
	return 1;
}

static int
init_fleet(const struct hr_fleetd_options *o)
{
	struct hr_fleet_key k = {
	    .name = "operator", .scopes = HR_SCOPE_READ | HR_SCOPE_USE | HR_SCOPE_ADMIN};
	struct hr_err err = {0};
	struct hr_store *s;
	char text[64];
	int r;

	if (hr_fleet_directory(o->of_engine.dir, &err) != 0)
		return fail(&err);
	s = o->backing->open_store(&o->of_engine, true, &err);
	r = s != NULL ? s->ops->key_make(s, &k, text, &err) : -1;
	hr_store_close(s);
	if (r != 0)
		return fail(&err);
	(void)fprintf(stdout, "%s\n", text);
	explicit_bzero(text, sizeof(text));
	return fflush(stdout) == 0 ? 0 : 1;
}

/* Checks all that a start needs except the listeners and the lock, which a running service
 * holds. */
static int
check(const struct hr_fleetd_options *o)
{
	struct hr_err err = {0};
	HR_BUF(b, 1u << 20);
	int r;

	r = o->no_nginx ? 0 : hr_fleet_edge_compose(&b, "all", &o->edge, &err);
	return r == 0 && o->backing->check(&o->of_engine, &err) == 0 ? 0 : fail(&err);
}

static int
print_nginx(const struct hr_fleetd_options *o)
{
	struct hr_err err = {0};
	HR_BUF(b, 1u << 20);
	int r;

	r = hr_fleet_edge_compose(&b, o->print, &o->edge, &err);
	if (r == 0)
		r = fwrite(b.p, 1, b.len, stdout) == b.len && fflush(stdout) == 0
			? 0
			: hr_err_set(&err, HR_E_SYS, "stdout cannot be written");
	return r == 0 ? 0 : fail(&err);
}

/* Returns the group through which nginx's workers reach the service's socket. */
static gid_t
socket_group(const struct hr_fleetd_options *o)
{
	struct group *g = o->group != NULL ? getgrnam(o->group) : NULL;

	return g != NULL ? g->gr_gid : (gid_t)-1;
}

static void
on_finding(void *arg, bool ok, const char *what, const char *text)
{
	hr_exam_line(arg, ok, what, text);
}

static int
doctor(const struct hr_fleetd_options *o)
{
	struct hr_fleet_exam x = {.options = &o->of_engine,
	    .backing = o->backing,
	    .edge = &o->edge,
	    .set = &o->set,
	    .group = o->group,
	    .own_nginx = !o->no_nginx,
	    .fn = on_finding};
	HR_BUF(b, 1u << 20);

	x.arg = &b;
	hr_fleet_doctor(&x);
	return fwrite(b.p, 1, b.len, stdout) == b.len && fflush(stdout) == 0 && !x.bad ? 0 : 1;
}

/* the state of the running service */
struct running {
	const struct hr_fleetd_options *o;
	struct hr_fleet *fleet;
	struct hr_fleet_server *server;
	struct hr_fleet_upgrade upgrade;
	int signals;
	int requests, listeners[HR_FLEET_LISTENERS];
	pid_t nginx;   /* -1: there is none */
	bool terminal; /* the service was started from a terminal */
	bool told;     /* the reason why nginx is not running was logged */
};

static int
listen_at(struct running *r, struct hr_err *err)
{
	size_t i;

	const struct {
		const char *option, *at;
	} places[HR_FLEET_LISTENERS] = {
	    {"listen", r->o->edge.listen}, {"console", r->o->edge.console}};

	for (i = 0; i < HR_FLEET_LISTENERS; i++) {
		if (r->listeners[i] >= 0 || places[i].at == NULL)
			continue;
		r->listeners[i] = hr_fleet_edge_listen(places[i].at, places[i].option, err);
		if (r->listeners[i] < 0 && err->msg[0] != '\0')
			return -1;
	}
	return 0;
}

/* Returns false if nginx cannot be started now. */
static bool
start_nginx(struct running *r)
{
	struct hr_err err = {0};
	HR_CLOSE int lock = hr_fleet_edge_lock(&r->o->edge, &err);

	if (lock >= 0 && listen_at(r, &err) == 0)
		r->nginx = hr_fleet_edge_start(&r->o->edge, lock, r->requests, r->listeners, &err);
	if (r->nginx >= 0)
		hr_log(HR_LOG_NOTICE, "ready: listening at %s", r->o->edge.listen);
	else if (!r->told)
		hr_log(HR_LOG_ERROR, "nginx: %s; it is tried again", err.msg);
	r->told = r->nginx < 0;
	if (r->nginx >= 0)
		hr_notify_send(&r->upgrade.notify, "READY=1\n");
	return r->nginx >= 0;
}

/* Executes the program now at this one's path. Returns only if that fails. */
static int
upgrade(struct running *r)
{
	struct hr_err err = {0};

	if (hr_fleet_upgrade_ask(&r->upgrade, &err) != 0) {
		hr_log(HR_LOG_ERROR, "upgrade refused, nothing has changed: %s", err.msg);
		return 0;
	}
	hr_notify_send(&r->upgrade.notify, "RELOADING=1\nMONOTONIC_USEC=%lld\n",
	    (long long)hr_now_ms() * 1000);
	hr_log(HR_LOG_NOTICE, "continuing as %s", r->upgrade.program);
	/* stop accepting first, so that new requests wait for the next program */
	hr_fleet_serve_stop(r->server);
	hr_fleet_leave(r->fleet);
	if (!hr_fleet_serve_wait(r->server, LEAVE_S))
		hr_log(
		    HR_LOG_WARNING, "requests that take longer than %d seconds are cut", LEAVE_S);
	(void)hr_fleet_upgrade_go(&r->upgrade, r->requests, r->listeners, r->nginx, &err);
	return fail(&err);
}

/* Ends nginx, which takes no new connection; it finishes by itself the answers that sandboxes still
 * give after LEAVE_S. A signal ends the wait. */
static void
end_nginx(struct running *r, int pidfd)
{
	struct pollfd p[2] = {
	    {.fd = pidfd, .events = POLLIN}, {.fd = r->signals, .events = POLLIN}};

	hr_fleet_edge_end(&r->o->edge, r->nginx);
	hr_fleet_leave(r->fleet); /* ends streams and waits */
	if (poll(p, 2, LEAVE_S * 1000) <= 0 || p[0].revents == 0)
		hr_log(HR_LOG_NOTICE, "nginx ends after the requests that it has");
}

static void
close_listeners(struct running *r)
{
	size_t i;

	for (i = 0; i < HR_FLEET_LISTENERS; i++)
		hr_fd_close(&r->listeners[i]);
}

/* Makes an nginx of the previous image or of a killed service reload the configuration. */
static int
go_on_with_nginx(struct running *r, const char *sock, struct hr_err *err)
{
	const struct hr_fleet_edge *e = &r->o->edge;
	bool adopted = r->nginx < 0 && r->requests < 0;
	int changed;

	if (adopted)
		r->nginx = hr_fleet_edge_adopt(e, sock, r->listeners, &r->requests);
	if (r->nginx > 0 && (r->o->no_nginx || !hr_fleet_edge_has_sockets(e, r->nginx))) {
		hr_fleet_edge_end(e, r->nginx);
		r->nginx = -1;
	}
	if (r->requests < 0)
		r->requests = hr_fleet_listen(sock, socket_group(r->o), err);
	if (r->requests < 0 || hr_fleet_edge_link(e, err) != 0)
		return -1;
	changed = r->o->no_nginx ? 1 : hr_fleet_edge_reload(e, r->nginx, err);
	if (adopted && changed > 0)
		close_listeners(
		    r); /* the old addresses may have changed; nginx has its own copies */
	return changed < 0 ? -1 : 0;
}

static bool
has_terminal(void)
{
	HR_CLOSE int fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);

	return fd >= 0;
}

/* Recognises a SIGHUP that is no request for an upgrade: the kernel's, or that of a shell whose
 * terminal has closed. A disowned service may outlive its terminal; others upgrade it later. */
static bool
is_hangup(const struct running *r, const struct signalfd_siginfo *s)
{
	return s->ssi_code == SI_KERNEL ||
	       (r->terminal && s->ssi_pid == (uint32_t)getsid(0) && !has_terminal());
}

/* Runs until a signal ends the service; restarts nginx when it ends. */
static int
look_after(struct running *r)
{
	struct pollfd p[2] = {{.fd = r->signals, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
	struct signalfd_siginfo s;
	int timeout, status = 0;

	if (r->nginx > 0)
		p[1].fd = hr_pidfd_open(r->nginx);
	for (;;) {
		timeout = -1;
		if (!r->o->no_nginx && r->nginx < 0) {
			if (start_nginx(r))
				p[1].fd = hr_pidfd_open(r->nginx);
			else
				timeout = NGINX_AGAIN_MS;
		}
		__atomic_store_n(&r->fleet->nginx, r->nginx, __ATOMIC_RELAXED);
		if (poll(p, 2, timeout) < 0 && errno != EINTR)
			return 1;
		if (p[1].fd >= 0 && p[1].revents != 0) {
			hr_log(HR_LOG_ERROR, "nginx has ended; it is started again");
			/* has no effect if a predecessor started nginx */
			(void)hr_spawn_end(r->nginx, NULL);
			r->nginx = -1;
			hr_fd_close(&p[1].fd);
			/* delayed, in case nginx cannot live */
			(void)poll(p, 1, NGINX_AGAIN_MS);
		}
		if (p[0].revents == 0 || hr_fd_read(r->signals, &s, sizeof(s)) != sizeof(s))
			continue;
		if (s.ssi_signo != SIGHUP || is_hangup(r, &s))
			break;
		status = upgrade(r);
		if (status != 0)
			break;
	}
	if (r->nginx > 0)
		end_nginx(r, p[1].fd);
	return status;
}

static int
block_signals(struct hr_err *err)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	sigset_t set;
	int fd;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	/* all threads inherit the mask */
	if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0 || sigaction(SIGPIPE, &ignore, NULL) != 0)
		return hr_err_sys(err, errno, "signals");
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	return fd >= 0 ? fd : hr_err_sys(err, errno, "signalfd");
}

static int
serve(struct hr_fleetd_options *o)
{
	static struct hr_fleet
	    fleet; /* static, because the threads use it until the process ends */
	static struct running at;
	HR_FREE char *sock = NULL;
	struct hr_err err = {0};
	const struct hr_fleet_engine *engine;
	struct hr_store *store;
	void *self;
	int r;

	if (hr_text_setf(&sock, &err, "%s/fleet.sock", o->edge.socket_dir) != 0 ||
	    hr_fleet_upgrade_begin(&at.upgrade, o->of_engine.argv, &err) != 0)
		return fail(&err);
	at.o = o;
	at.fleet = &fleet;
	at.nginx = hr_fleet_upgrade_nginx(&at.upgrade);
	at.requests = hr_handover_take(&at.upgrade.handed, "requests");
	hr_fleet_upgrade_listeners(&at.upgrade, at.listeners);
	hr_handover_done(&at.upgrade.handed);
	at.terminal = has_terminal();
	at.signals = block_signals(&err);
	if (at.signals < 0 || hr_fleet_directory(o->of_engine.dir, &err) != 0)
		return fail(&err);
	o->edge.patience_s = o->set.patience_s;
	store = o->backing->open_store(&o->of_engine, false, &err);
	if (store == NULL || hr_fleet_edge_make_dirs(&o->edge, &err) != 0 ||
	    o->backing->open_engine(&o->of_engine, &engine, &self, &err) != 0 ||
	    hr_fleet_init(&fleet, &o->set, store, engine, self, &err) != 0)
		return fail(&err);
	o->api.fleet = &fleet;
	o->api.listen = o->no_nginx ? NULL : o->edge.listen;
	/* the console is made also without --console: an existing nginx may include it. Sign-ins
	 * are per process */
	if (strcmp(o->engine, "local") == 0 &&
	    (o->api.console = hr_fleet_console_open(&err)) == NULL)
		return fail(&err);
	if (o->builds) {
		o->api.builds =
		    hr_fleet_builds_open(o->of_engine.dir, o->upload_s, engine, self, &err);
		if (o->api.builds == NULL)
			return fail(&err);
	}
	if (go_on_with_nginx(&at, sock, &err) != 0)
		return fail(&err);
	at.server = hr_fleet_serve(&o->api, at.requests, THREADS, &err);
	if (at.server == NULL)
		return fail(&err);
	if (o->no_nginx || at.nginx > 0) {
		hr_log(HR_LOG_NOTICE, "ready: listening at %s",
		    o->no_nginx ? o->edge.run_dir : o->edge.listen);
		hr_notify_send(&at.upgrade.notify, "READY=1\n");
	}
	r = look_after(&at);
	hr_fleet_edge_remove_dirs(&o->edge);
	return r;
}

/* Returns the back-end to configure: for the doctor, Kubernetes if the engine uses it; otherwise
 * o->kind. */
static const char *
kind_of(const struct hr_fleetd_options *o)
{
	return o->doctor && strcmp(o->engine, "kubernetes") == 0 ? "kubernetes" : o->kind;
}

/* Runs the subcommand; `last` is the last argument. */
static int
do_it(struct hr_fleetd_options *o, const char *last)
{
	int r;

	if (o->print != NULL)
		return print_nginx(o);
	if (o->call != NULL && o->backing->call != NULL)
		return o->backing->call(&o->of_engine, o->call, last);
	if (o->check)
		return check(o);
	if (o->doctor)
		return doctor(o);
	if (o->init)
		return init_fleet(o);
	r = serve(o);
	/* threads still run: leave their memory to the kernel */
	(void)fflush(stdout);
	_exit(r);
}

int
main(int argc, char **argv)
{
	const char *data = getenv("HANDRAIL_DATADIR");
	struct hr_fleetd_options o = {.of_engine = {.dir = HR_FLEETD_STATE,
					  .environ = (const char *const *)environ,
					  .argv = argv,
					  .argc = argc},
	    .engine = "local",
	    .group = geteuid() == 0 ? "nogroup" : NULL,
	    .kind = "docker",
	    .level = "info",
	    .upload_s = 600,
	    .api = {.registry_prefix = "", .most_hours = 24},
	    .set = {.keep_ended_s = 2592000,
		.snapshots_mb = 10240,
		.jobs = 8,
		.waiting = THREADS / 2,
		.patience_s = 30},
	    .edge = {.listen = "127.0.0.1:8000",
		.data_dir = data != NULL ? data : HR_DATADIR,
		.patience_s = 30,
		.user = geteuid() == 0 ? "nobody nogroup" : NULL}};
	enum hr_log_level level = HR_LOG_INFO;
	struct hr_err err = {0};
	const char *wrong;
	HR_FREE char *run = NULL;
	HR_FREE char *sockets = NULL;
	int r;

	o.config = hr_config_new(&err);
	if (o.config == NULL)
		return 1;
	r = hr_fleetd_parse(&o, argc, argv);
	if (r < 0 && (hr_config_set(o.config, "core.runtime", kind_of(&o), &err) != 0 ||
			 (o.doctor && o.of_engine.image != NULL &&
			     hr_config_set(o.config, "sandbox.runtime_container_image",
				 o.of_engine.image, &err) != 0) ||
			 hr_log_level_parse(o.level, &level) != 0)) {
		(void)fprintf(stderr, "handrail-fleetd: %s\n",
		    err.msg[0] != '\0'
			? err.msg
			: "--log-level must be error, warning, notice, info or debug");
		r = 2;
	}
	hr_log_setup("fleetd", HR_LOG_JSON, level);
	o.edge.domain = o.api.domain;
	o.of_engine.config = o.config;
	o.of_engine.other_nginx = o.no_nginx;
	o.set.image = o.of_engine.image;
	o.api.options = &o.of_engine;
	o.api.kind = o.kind;
	o.api.templates = &o.templates;
	o.set.environ = o.of_engine.environ;
	o.backing = hr_fleet_backing(o.engine);
	if (r < 0 && (wrong = hr_fleetd_misfit(&o)) != NULL) {
		(void)fprintf(stderr, "handrail-fleetd: %s\n", wrong);
		r = 2;
	}
	if (r < 0 && (hr_text_setf(&run, &err, "%s/run", o.of_engine.dir) != 0 ||
			 hr_fleet_edge_socket_dir(o.of_engine.dir, &sockets, &err) != 0))
		r = fail(&err);
	o.edge.run_dir = run;
	o.edge.socket_dir = sockets;
	if (r < 0)
		r = do_it(&o, argv[argc - 1]);
	hr_strv_done(&o.templates);
	hr_config_free(o.config);
	return r < 0 ? 1 : r;
}
