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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "fleet/api.h"
#include "fleet/edge.h"
#include "fleet/engine.h"
#include "fleet/fleet.h"
#include "fleet/serve.h"
#include "host/config/settings.h"

#define STATE_DIR "/var/lib/handrail-fleet"
#define NGINX_AGAIN_MS 1000
#define THREADS 32

struct options {
	const char *kind, *group, *print, *level, *engine;
	bool init, no_nginx, builds;
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
    {"print-nginx", TEXT, AT(print), 0, 0,
	"PART        print http, server, routes, wildcard or all of nginx's configuration"},
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
	int rc;

	if (hr_fleet_directory(o->of_engine.dir, &err) != 0)
		return fail(&err);
	s = o->backing->open_store(&o->of_engine, true, &err);
	rc = s != NULL ? s->ops->key_make(s, &k, text, &err) : -1;
	hr_store_close(s);
	if (rc != 0)
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
	int rc;

	hr_buf_init(&b, 1u << 20);
	rc = hr_fleet_edge_compose(&b, o->print, &o->edge, &err);
	if (rc == 0)
		rc = fwrite(b.p, 1, b.len, stdout) == b.len && fflush(stdout) == 0
			 ? 0
			 : hr_err_set(&err, HR_E_SYS, "stdout cannot be written");
	hr_buf_done(&b);
	return rc == 0 ? 0 : fail(&err);
}

/* nginx's workers are to reach our socket. */
static gid_t
socket_group(const struct options *o)
{
	const char *name = o->group != NULL ? o->group : geteuid() == 0 ? "nogroup" : NULL;
	struct group *g = name != NULL ? getgrnam(name) : NULL;

	return g != NULL ? g->gr_gid : (gid_t)-1;
}

static int
watch_process(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* Until a signal ends us; nginx is started again when it ends. */
static int
look_after(const struct options *o, int signals)
{
	struct pollfd p[2] = {{.fd = signals, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
	struct hr_err err = {0};
	pid_t nginx = -1;
	int timeout;

	for (;;) {
		if (!o->no_nginx && nginx < 0) {
			nginx = hr_fleet_edge_start(&o->edge, &err);
			p[1].fd = nginx > 0 ? watch_process(nginx) : -1;
			if (nginx < 0)
				hr_log(HR_LOG_ERROR, "nginx: %s", err.msg);
			else
				hr_log(HR_LOG_NOTICE, "ready: listening at %s", o->edge.listen);
		}
		timeout = !o->no_nginx && nginx < 0 ? NGINX_AGAIN_MS : -1;
		if (poll(p, 2, timeout) < 0 && errno != EINTR)
			return 1;
		if (p[1].fd >= 0 && p[1].revents != 0) {
			hr_log(HR_LOG_ERROR, "nginx has ended; it is started again");
			(void)waitpid(nginx, NULL, 0);
			hr_fd_close(&p[1].fd);
			nginx = -1;
			/* not at once, for the case that it cannot live */
			(void)poll(p, 1, NGINX_AGAIN_MS);
		}
		if (p[0].revents != 0)
			break;
	}
	if (nginx > 0) {
		(void)kill(nginx, SIGTERM);
		(void)waitpid(nginx, NULL, 0);
	}
	return 0;
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
	char *run = NULL, *sock = NULL;
	struct hr_err err = {0};
	const struct hr_fleet_engine *engine;
	struct hr_store *store;
	void *self;
	int signals, fd;

	if (asprintf(&run, "%s/run", o->of_engine.dir) < 0 ||
	    asprintf(&sock, "%s/fleet.sock", run) < 0) {
		(void)hr_err_nomem(&err);
		return fail(&err);
	}
	signals = block_signals(&err);
	if (signals < 0 || hr_fleet_directory(o->of_engine.dir, &err) != 0 ||
	    hr_path_mkdirs(run, 0755, NULL, &err) != 0)
		return fail(&err);
	if (geteuid() == 0 && chmod(o->of_engine.dir, 0711) != 0) {
		(void)hr_err_sys(&err, errno, "%s", o->of_engine.dir);
		return fail(&err);
	}
	o->edge.run_dir = run;
	o->edge.patience_s = o->set.patience_s;
	store = o->backing->open_store(&o->of_engine, false, &err);
	if (store == NULL || o->backing->open_engine(&o->of_engine, &engine, &self, &err) != 0 ||
	    hr_fleet_init(&fleet, &o->set, store, engine, self, &err) != 0)
		return fail(&err);
	o->api.fleet = &fleet;
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
	fd = hr_fleet_listen(sock, socket_group(o), &err);
	if (fd < 0 || hr_fleet_serve(&o->api, fd, THREADS, &err) != 0)
		return fail(&err);
	if (o->no_nginx)
		hr_log(HR_LOG_NOTICE, "ready: listening at %s", sock);
	return look_after(o, signals);
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
	if (o->builds && strcmp(o->kind, "docker") != 0)
		return "--builds needs the kind docker";
	return o->backing == NULL ? "--engine: there is none of that name" : NULL;
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
	    .kind = "docker",
	    .level = "info",
	    .upload_s = 600,
	    .api = {.registry_prefix = ""},
	    .set = {.jobs = 8, .waiting = THREADS / 2, .patience_s = 30},
	    .edge = {.listen = "127.0.0.1:8000",
		.data_dir = data != NULL ? data : HR_DATADIR,
		.run_dir = STATE_DIR "/run",
		.patience_s = 30,
		.user = geteuid() == 0 ? "nobody nogroup" : NULL}};
	enum hr_log_level level = HR_LOG_INFO;
	struct hr_err err = {0};
	const char *wrong;
	char *run = NULL;
	int rc;

	o.config = hr_config_new(&err);
	if (o.config == NULL)
		return 1;
	rc = parse(&o, argc, argv);
	if (rc < 0 && (hr_config_set(o.config, "core.runtime", o.kind, &err) != 0 ||
			  hr_log_level_parse(o.level, &level) != 0)) {
		(void)fprintf(stderr, "handrail-fleetd: %s\n",
		    err.msg[0] != '\0' ? err.msg : "--log-level: no such level");
		rc = 2;
	}
	hr_log_setup("fleetd", HR_LOG_JSON, level);
	o.edge.domain = o.api.domain;
	o.of_engine.config = o.config;
	o.set.image = o.of_engine.image;
	o.backing = hr_fleet_backing(o.engine);
	if (rc < 0 && (wrong = misfit(&o)) != NULL) {
		(void)fprintf(stderr, "handrail-fleetd: %s\n", wrong);
		rc = 2;
	}
	if (rc < 0 && o.print != NULL) {
		if (asprintf(&run, "%s/run", o.of_engine.dir) >= 0) {
			o.edge.run_dir = run;
			rc = print_nginx(&o);
			free(run);
		}
	} else if (rc < 0 && o.call != NULL && o.backing->call != NULL) {
		rc = o.backing->call(&o.of_engine, o.call, argv[argc - 1]);
	} else if (rc < 0 && o.init) {
		rc = init_fleet(&o);
	} else if (rc < 0) {
		rc = serve(&o);
		/* threads are at work: what they hold is the kernel's to take */
		(void)fflush(stdout);
		_exit(rc);
	}
	hr_config_free(o.config);
	return rc < 0 ? 1 : rc;
}
