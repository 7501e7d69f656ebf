/* handrail-fleetd: sandboxes as a service, on one machine. See handrail-fleetd(8).
 *
 * It may be killed at any moment: what was decided is in the store, and the next one goes on. So it
 * ends in the same way when it is told to. */
#include "config.h"

#include <errno.h>
#include <getopt.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/spawn.h"
#include "fleet/api.h"
#include "fleet/doctor.h"
#include "fleet/edge.h"
#include "fleet/engine.h"
#include "fleet/fleet.h"
#include "fleet/serve.h"
#include "fleet/upgrade.h"
#include "host/common/exam.h"
#include "host/config/settings.h"

#define STATE_DIR "/var/lib/handrail-fleet"
#define NGINX_AGAIN_MS 200
#define LEAVE_S 10
#define THREADS 32

struct options {
	const char *kind, *group, *print, *level, *engine;
	bool init, doctor, no_nginx, builds;
	int64_t upload_s;
	struct hr_fleet_settings set;
	struct hr_fleet_edge edge;
	struct hr_fleet_api api;
	struct hr_fleet_options of_engine;
	const struct hr_fleet_backing *backing;
	struct hr_config *config;
	const char *call; /* of a process that the engine started */
};

/* ---- options ---- */

enum { NUMBER, TEXT, SWITCH, SETTING };

static const struct row {
	const char *name;
	int type;
	size_t at;
	int64_t least, most;
	const char *help;
} rows[] = {
#define AT(member) offsetof(struct options, member)
    {"state-dir", TEXT, AT(of_engine.dir), 0, 0,
	"DIR         where the fleet is kept [" STATE_DIR "]"},
    {"listen", TEXT, AT(edge.listen), 0, 0, "ADDR:PORT   of nginx [127.0.0.1:8000]"},
    {"console", TEXT, AT(edge.console), 0, 0,
	"ADDR:PORT   of the console, another than the others' [none]"},
    {"engine", TEXT, AT(engine), 0, 0, "NAME        who makes them: local, kubernetes [local]"},
    {"kind", TEXT, AT(kind), 0, 0, "KIND        of the sandboxes: docker, local [docker]"},
    {"image", TEXT, AT(of_engine.image), 0, 0, "NAME        for starts that name none"},
    {"set", SETTING, 0, 0, 0, "KEY=VALUE   a setting of handrail(1); may be repeated"},
    {"public-url", TEXT, AT(api.public_url), 0, 0, "URL         before the ids of sandboxes"},
    {"domain", TEXT, AT(api.domain), 0, 0, "NAME        of names like PORT-ID.NAME"},
    {"url-by-name", SWITCH, AT(api.by_name), 0, 0,
	"            clients are told ID.NAME, of --domain, and not a path"},
    {"registry-prefix", TEXT, AT(api.registry_prefix), 0, 0, "TEXT        told to clients"},
    {"builds", SWITCH, AT(builds), 0, 0, "            images are built, below --registry-prefix"},
    {"build-upload", NUMBER, AT(upload_s), 1, 1 << 30,
	"SECONDS     for what an image is built of to come [600]"},
    {"max-sandboxes", NUMBER, AT(set.limits.sandboxes), 0, 100000,
	"N           at once [no bound]"},
    {"max-factors", NUMBER, AT(set.limits.factors), 0, 1000000,
	"N           the sum of resource factors at once [no bound]"},
    {"memory-mb", NUMBER, AT(of_engine.memory_mb), 0, 1 << 24,
	"N           for a resource factor of 1 [no limit]"},
    {"cpu-percent", NUMBER, AT(of_engine.cpu_percent), 0, 100000,
	"N           of one core, for a resource factor of 1 [no limit]"},
    {"idle-pause", NUMBER, AT(set.idle_pause_s), 0, 1 << 30,
	"SECONDS     without activity until a pause [never]"},
    {"idle-stop", NUMBER, AT(set.idle_stop_s), 0, 1 << 30,
	"SECONDS     of a pause until the end [never]"},
    {"no-nginx", SWITCH, AT(no_nginx), 0, 0, "            an nginx that is there is used"},
    {"socket-group", TEXT, AT(group), 0, 0, "GROUP       may connect to the socket"},
    {"log-level", TEXT, AT(level), 0, 0, "LEVEL       error, warning, notice, info, debug"},
    {"init", SWITCH, AT(init), 0, 0, "            make the fleet and a key for its operator"},
    {"doctor", SWITCH, AT(doctor), 0, 0, "            say what is missing here, and what mends it"},
    {"print-nginx", TEXT, AT(print), 0, 0,
	"PART        print http, server, routes, wildcard, console or all of nginx's "
	"configuration"},
};
#define ROWS (sizeof(rows) / sizeof(*rows))

static int
usage(FILE *to)
{
	(void)fprintf(to, "usage: handrail-fleetd [OPTION]...\n");
	for (size_t i = 0; i < ROWS; i++)
		(void)fprintf(to, "  --%-16s %s\n", rows[i].name, rows[i].help);
	return to == stdout ? 0 : 2;
}

static int
take_setting(struct options *o, const char *text)
{
	const char *eq = strchr(text, '=');
	struct hr_err err = {0};
	char key[128];

	if (eq == NULL || (size_t)(eq - text) >= sizeof(key)) {
		(void)fprintf(stderr, "handrail-fleetd: --set takes KEY=VALUE, not \"%s\"\n", text);
		return -1;
	}
	(void)snprintf(key, sizeof(key), "%.*s", (int)(eq - text), text);
	if (hr_config_set(o->config, key, eq + 1, &err) == 0)
		return 0;
	(void)fprintf(stderr, "handrail-fleetd: --set: %s\n", err.msg);
	return -1;
}

static int
take(struct options *o, const struct row *r, const char *text)
{
	char *at = (char *)o + r->at, *end;
	long long n;

	switch (r->type) {
	case SWITCH: *(bool *)at = true; return 0;
	case TEXT: memcpy(at, &text, sizeof(text)); return 0;
	case SETTING: return take_setting(o, text);
	default: break;
	}
	errno = 0;
	n = strtoll(text, &end, 10);
	if (errno != 0 || end == text || *end != '\0' || n < r->least || n > r->most) {
		(void)fprintf(stderr,
		    "handrail-fleetd: --%s takes a number from %lld to %lld, not \"%s\"\n", r->name,
		    (long long)r->least, (long long)r->most, text);
		return -1;
	}
	*(int64_t *)(void *)at = n;
	return 0;
}

/* -1: go on; otherwise the exit status. */
static int
parse(struct options *o, int argc, char **argv)
{
	struct option known[ROWS + 4] = {{0}};
	int index, c;

	for (size_t i = 0; i < ROWS; i++)
		known[i] = (struct option){rows[i].name,
		    rows[i].type == SWITCH ? no_argument : required_argument, NULL, 'x'};
	known[ROWS] = (struct option){"help", no_argument, NULL, 'h'};
	known[ROWS + 2] = (struct option){"call", required_argument, NULL, 'e'};
	known[ROWS + 1] = (struct option){"version", no_argument, NULL, 'V'};
	while ((c = getopt_long(argc, argv, "h", known, &index)) != -1) {
		if (c == 'h')
			return usage(stdout);
		if (c == 'V') {
			(void)fprintf(stdout, "handrail-fleetd %s\n", PACKAGE_VERSION);
			return 0;
		}
		if (c == 'e') { /* the engine's own, behind the service's */
			o->call = optarg;
			continue;
		}
		if (c != 'x' || take(o, &rows[index], optarg) != 0)
			return c == 'x' ? 2 : usage(stderr);
	}
	return optind + (o->call != NULL) == argc ? -1 : usage(stderr);
}

/* ---- parts ---- */

static int
fail(const struct hr_err *err)
{
	(void)fprintf(stderr, "handrail-fleetd: %s\n", err->msg);
	return 1;
}

static int
init_fleet(const struct options *o)
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

static int
print_nginx(const struct options *o)
{
	struct hr_err err = {0};
	struct hr_buf b;
	int r;

	hr_buf_init(&b, 1u << 20);
	r = hr_fleet_edge_compose(&b, o->print, &o->edge, &err);
	if (r == 0)
		r = fwrite(b.p, 1, b.len, stdout) == b.len && fflush(stdout) == 0
			? 0
			: hr_err_set(&err, HR_E_SYS, "stdout cannot be written");
	hr_buf_done(&b);
	return r == 0 ? 0 : fail(&err);
}

/* nginx's workers are to reach our socket. */
static gid_t
socket_group(const struct options *o)
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
doctor(const struct options *o)
{
	struct hr_fleet_exam x = {.options = &o->of_engine,
	    .backing = o->backing,
	    .edge = &o->edge,
	    .set = &o->set,
	    .group = o->group,
	    .own_nginx = !o->no_nginx,
	    .fn = on_finding};
	struct hr_buf b;
	int r;

	hr_buf_init(&b, 1u << 20);
	x.arg = &b;
	hr_fleet_doctor(&x);
	r = fwrite(b.p, 1, b.len, stdout) == b.len && fflush(stdout) == 0 && !x.bad ? 0 : 1;
	hr_buf_done(&b);
	return r;
}

/* The service, as long as it runs. */
struct running {
	const struct options *o;
	struct hr_fleet *fleet;
	struct hr_fleet_server *server;
	struct hr_fleet_upgrade upgrade;
	int signals;
	int requests, listeners[HR_FLEET_LISTENERS];
	pid_t nginx; /* -1: none */
	bool told;   /* why there is none */
};

static int
listen_at(struct running *r, struct hr_err *err)
{
	const struct {
		const char *option, *at;
	} places[HR_FLEET_LISTENERS] = {
	    {"listen", r->o->edge.listen}, {"console", r->o->edge.console}};

	for (size_t i = 0; i < HR_FLEET_LISTENERS; i++) {
		if (r->listeners[i] >= 0 || places[i].at == NULL)
			continue;
		r->listeners[i] = hr_fleet_edge_listen(places[i].at, places[i].option, err);
		if (r->listeners[i] < 0 && err->msg[0] != '\0')
			return -1;
	}
	return 0;
}

/* false: it cannot be started now. */
static bool
start_nginx(struct running *r)
{
	struct hr_err err = {0};

	if (listen_at(r, &err) == 0)
		r->nginx = hr_fleet_edge_start(&r->o->edge, r->listeners, &err);
	if (r->nginx >= 0)
		hr_log(HR_LOG_NOTICE, "ready: listening at %s", r->o->edge.listen);
	else if (!r->told)
		hr_log(HR_LOG_ERROR, "nginx: %s; it is tried again", err.msg);
	r->told = r->nginx < 0;
	if (r->nginx >= 0)
		hr_notify_send(&r->upgrade.notify, "READY=1\n");
	return r->nginx >= 0;
}

/* The program that lies there now goes on in our place. Returns if it would not. */
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
	hr_log(HR_LOG_NOTICE, "going on as %s", r->upgrade.program);
	/* first: what is left unanswered then is asked of the next image */
	hr_fleet_serve_stop(r->server);
	hr_fleet_leave(r->fleet);
	if (!hr_fleet_serve_wait(r->server, LEAVE_S))
		hr_log(
		    HR_LOG_WARNING, "requests that take longer than %d seconds are cut", LEAVE_S);
	(void)hr_fleet_upgrade_go(&r->upgrade, r->requests, r->listeners, r->nginx, &err);
	return fail(&err);
}

/* Waits for its end. Workers of one that was killed live on and take connections: they end, too, as
 * long as the group's number is theirs. */
static void
end_nginx(struct running *r)
{
	siginfo_t info;
	int got;

	do
		got = waitid(P_PID, (id_t)r->nginx, &info, WEXITED | WNOWAIT);
	while (got != 0 && errno == EINTR);
	if (got == 0)
		(void)kill(-r->nginx, SIGTERM);
	(void)hr_spawn_end(r->nginx, NULL);
	r->nginx = -1;
}

/* Until a signal ends us; nginx is started again when it ends. */
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
		if (poll(p, 2, timeout) < 0 && errno != EINTR)
			return 1;
		if (p[1].fd >= 0 && p[1].revents != 0) {
			hr_log(HR_LOG_ERROR, "nginx has ended; it is started again");
			end_nginx(r);
			hr_fd_close(&p[1].fd);
			/* not at once, for the case that it cannot live */
			(void)poll(p, 1, NGINX_AGAIN_MS);
		}
		if (p[0].revents == 0 || hr_fd_read(r->signals, &s, sizeof(s)) != sizeof(s))
			continue;
		if (s.ssi_signo != SIGHUP)
			break;
		status = upgrade(r);
		if (status != 0)
			break;
	}
	if (r->nginx > 0) {
		(void)kill(r->nginx, SIGTERM);
		end_nginx(r);
	}
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
	/* all threads inherit it */
	if (pthread_sigmask(SIG_BLOCK, &set, NULL) != 0 || sigaction(SIGPIPE, &ignore, NULL) != 0)
		return hr_err_sys(err, errno, "signals");
	fd = signalfd(-1, &set, SFD_CLOEXEC);
	return fd >= 0 ? fd : hr_err_sys(err, errno, "signalfd");
}

static int
serve(struct options *o)
{
	static struct hr_fleet fleet; /* of threads that end with the process */
	static struct running at;
	const char *run = o->edge.run_dir;
	char *sock = NULL;
	struct hr_err err = {0};
	const struct hr_fleet_engine *engine;
	struct hr_store *store;
	void *self;

	if (asprintf(&sock, "%s/fleet.sock", run) < 0) {
		(void)hr_err_nomem(&err);
		return fail(&err);
	}
	if (hr_fleet_upgrade_begin(&at.upgrade, o->of_engine.argv, &err) != 0)
		return fail(&err);
	at.o = o;
	at.fleet = &fleet;
	at.nginx = hr_fleet_upgrade_nginx(&at.upgrade);
	at.requests = hr_handover_take(&at.upgrade.handed, "requests");
	hr_fleet_upgrade_listeners(&at.upgrade, at.listeners);
	hr_handover_done(&at.upgrade.handed);
	at.signals = block_signals(&err);
	if (at.signals < 0 || hr_fleet_directory(o->of_engine.dir, &err) != 0 ||
	    hr_path_mkdirs(run, 0755, NULL, &err) != 0)
		return fail(&err);
	if (geteuid() == 0 && chmod(o->of_engine.dir, 0711) != 0) {
		(void)hr_err_sys(&err, errno, "%s", o->of_engine.dir);
		return fail(&err);
	}
	o->edge.patience_s = o->set.patience_s;
	store = o->backing->open_store(&o->of_engine, false, &err);
	if (store == NULL || o->backing->open_engine(&o->of_engine, &engine, &self, &err) != 0 ||
	    hr_fleet_init(&fleet, &o->set, store, engine, self, &err) != 0)
		return fail(&err);
	o->api.fleet = &fleet;
	/* also without --console: an nginx that is there may have it. Sign-ins are one process's.
	 */
	if (strcmp(o->engine, "local") == 0 &&
	    (o->api.console = hr_fleet_console_open(&err)) == NULL)
		return fail(&err);
	if (o->builds) {
		if (engine->build == NULL)
			(void)hr_err_set(&err, HR_E_UNSUPPORTED,
			    "--builds: the engine %s makes no images", o->engine);
		else
			o->api.builds =
			    hr_fleet_builds_open(o->of_engine.dir, o->upload_s, engine, self, &err);
		if (o->api.builds == NULL)
			return fail(&err);
	}
	if (at.nginx > 0 && hr_fleet_edge_reload(&o->edge, at.nginx, &err) != 0)
		return fail(&err);
	if (at.requests < 0)
		at.requests = hr_fleet_listen(sock, socket_group(o), &err);
	free(sock);
	at.server = at.requests >= 0 ? hr_fleet_serve(&o->api, at.requests, THREADS, &err) : NULL;
	if (at.server == NULL)
		return fail(&err);
	if (o->no_nginx || at.nginx > 0) {
		hr_log(HR_LOG_NOTICE, "ready: listening at %s",
		    o->no_nginx ? o->edge.run_dir : o->edge.listen);
		hr_notify_send(&at.upgrade.notify, "READY=1\n");
	}
	return look_after(&at);
}

#define TEXT_OF(number) #number
#define TEXT(macro) TEXT_OF(macro)

/* Options that do not go together; NULL: they do. */
static const char *
misfit(const struct options *o)
{
	if (o->api.by_name && o->api.domain == NULL)
		return "--url-by-name needs a --domain";
	if (o->builds && *o->api.registry_prefix == '\0')
		return "--builds needs a --registry-prefix";
	if (o->builds && strlen(o->api.registry_prefix) > HR_FLEET_PREFIX_MAX)
		return "--builds needs a --registry-prefix of up to " TEXT(
		    HR_FLEET_PREFIX_MAX) " bytes";
	if (o->edge.console != NULL && strcmp(o->edge.console, o->edge.listen) == 0)
		return "--console needs an address of its own: what sandboxes answer comes by "
		       "--listen";
	if (o->edge.console != NULL && strcmp(o->engine, "kubernetes") == 0)
		return "--console needs the engine local: its sign-ins are one process's";
	if (o->builds && strcmp(o->kind, "docker") != 0)
		return "--builds needs the kind docker";
	return o->backing == NULL ? "--engine: there is none of that name" : NULL;
}

/* The doctor looks at what the engine is made for. */
static const char *
kind_of(const struct options *o)
{
	return o->doctor && strcmp(o->engine, "kubernetes") == 0 ? "kubernetes" : o->kind;
}

int
main(int argc, char **argv)
{
	const char *data = getenv("HANDRAIL_DATADIR");
	struct options o = {.of_engine = {.dir = STATE_DIR,
				.environ = (const char *const *)environ,
				.argv = argv,
				.argc = argc},
	    .engine = "local",
	    .group = geteuid() == 0 ? "nogroup" : NULL,
	    .kind = "docker",
	    .level = "info",
	    .upload_s = 600,
	    .api = {.registry_prefix = ""},
	    .set = {.jobs = 8, .waiting = THREADS / 2, .patience_s = 30},
	    .edge = {.listen = "127.0.0.1:8000",
		.data_dir = data != NULL ? data : HR_DATADIR,
		.patience_s = 30,
		.user = geteuid() == 0 ? "nobody nogroup" : NULL}};
	enum hr_log_level level = HR_LOG_INFO;
	struct hr_err err = {0};
	const char *wrong;
	char *run = NULL;
	int r;

	o.config = hr_config_new(&err);
	if (o.config == NULL)
		return 1;
	r = parse(&o, argc, argv);
	if (r < 0 && (hr_config_set(o.config, "core.runtime", kind_of(&o), &err) != 0 ||
			 (o.doctor && o.of_engine.image != NULL &&
			     hr_config_set(o.config, "sandbox.runtime_container_image",
				 o.of_engine.image, &err) != 0) ||
			 hr_log_level_parse(o.level, &level) != 0)) {
		(void)fprintf(stderr, "handrail-fleetd: %s\n",
		    err.msg[0] != '\0' ? err.msg : "--log-level: no such level");
		r = 2;
	}
	hr_log_setup("fleetd", HR_LOG_JSON, level);
	o.edge.domain = o.api.domain;
	o.of_engine.config = o.config;
	o.set.image = o.of_engine.image;
	o.backing = hr_fleet_backing(o.engine);
	if (r < 0 && (wrong = misfit(&o)) != NULL) {
		(void)fprintf(stderr, "handrail-fleetd: %s\n", wrong);
		r = 2;
	}
	if (r < 0 && asprintf(&run, "%s/run", o.of_engine.dir) < 0)
		return 1;
	o.edge.run_dir = run;
	if (r < 0 && o.print != NULL) {
		r = print_nginx(&o);
	} else if (r < 0 && o.call != NULL && o.backing->call != NULL) {
		r = o.backing->call(&o.of_engine, o.call, argv[argc - 1]);
	} else if (r < 0 && o.doctor) {
		r = doctor(&o);
	} else if (r < 0 && o.init) {
		r = init_fleet(&o);
	} else if (r < 0) {
		r = serve(&o);
		/* threads are at work: what they hold is the kernel's to take */
		(void)fflush(stdout);
		_exit(r);
	}
	free(run);
	hr_config_free(o.config);
	return r < 0 ? 1 : r;
}
