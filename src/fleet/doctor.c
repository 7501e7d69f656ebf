/* Checks what the service needs of a machine. Each bad finding ends with its repair. */
#include "config.h"

#include "fleet/doctor.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/process/spawn.h"
#include "base/trust.h"
#include "fleet/fleet.h"
#include "host/common/exam.h"
#include "host/client/rest.h"
#include "proto/json.h"

#define TEXT_MAX (8u << 20) /* maximum bytes of a whole nginx configuration */
#define DISK_MB 256
/* minimum for 4096 connections of an nginx worker, each with one to a sandbox */
#define FILES_MIN 8192
#define CLOCK_SLACK_S 60
#define GROUPS_MAX 128

static void
found(void *arg, bool ok, const char *what, const char *text)
{
	struct hr_fleet_exam *x = arg;

	/* this back-end has no default image: each start names one */
	if (!ok && strcmp(what, "image") == 0 && x->options->image == NULL)
		return;
	x->bad |= !ok;
	x->fn(x->arg, ok, what, text);
}

#define SAY(x, ok, what, ...) hr_exam_say(found, x, ok, what, __VA_ARGS__)

/* ---- state ---- */

/* Returns true if the directory's contents may be checked. */
static bool
state_directory(struct hr_fleet_exam *x)
{
	const char *dir = x->options->dir;
	struct hr_err e = {0};
	struct stat st;

	if (stat(dir, &st) != 0) {
		SAY(x, false, "state directory", "%s: %s; handrail fleet init %s", dir,
		    strerror(errno), dir);
		return false;
	}
	if (hr_trust_directory(dir, &e) != 0 || access(dir, R_OK | W_OK | X_OK) != 0) {
		SAY(x, false, "state directory", "%s; chown -R %ld %s; chmod go-w %s",
		    e.msg[0] != '\0' ? e.msg : "it cannot be written", (long)geteuid(), dir, dir);
		return false;
	}
	SAY(x, true, "state directory", "%s", dir);
	return true;
}

static void
count_operators(void *arg, const struct hr_fleet_key *k)
{
	if ((k->scopes & HR_SCOPE_ADMIN) != 0 && hr_fleet_key_valid(k))
		++*(int *)arg;
}

/* Returns true if a running service holds the store. */
static bool
store(struct hr_fleet_exam *x)
{
	struct hr_err e = {0};
	struct hr_store *s = x->backing->open_store(x->options, false, &e);
	bool served = s == NULL && e.code == HR_E_BUSY;
	int operators = 0;

	if (s == NULL) {
		SAY(x, served, "store", "%s", served ? "a service has it" : e.msg);
		return served;
	}
	SAY(x, true, "store", "it opens, and no service has it");
	if (s->ops->keys(s, count_operators, &operators, &e) != 0)
		SAY(x, false, "keys", "%s", e.msg);
	else if (operators == 0)
		SAY(x, false, "keys", "no operator has a key that is good; handrail fleet init %s",
		    x->options->dir);
	else
		SAY(x, true, "keys", "%d of operators", operators);
	hr_store_close(s);
	return false;
}

static void
room(struct hr_fleet_exam *x)
{
	int64_t ram = (int64_t)sysconf(_SC_PHYS_PAGES) / 1024 * sysconf(_SC_PAGESIZE) / 1024;
	int64_t factors = x->set->limits.factors, mb = x->options->memory_mb;
	struct statvfs v;
	int64_t free_mb;

	if (statvfs(x->options->dir, &v) == 0) {
		free_mb = (int64_t)(v.f_bavail / 1024 * v.f_frsize / 1024);
		SAY(x, free_mb >= DISK_MB, "disk", "%lld MB free%s", (long long)free_mb,
		    free_mb >= DISK_MB ? "" : "; docker image prune, or a larger disk");
	}
	if (factors > 0 && mb > 0)
		SAY(x, factors <= ram / mb, "memory", "%lld MB, of which sandboxes get %lld%s",
		    (long long)ram, (long long)(factors * mb),
		    factors <= ram / mb ? "" : "; reduce --max-factors or --memory-mb");
	else
		SAY(x, true, "memory",
		    "%lld MB; sandboxes have no bound together but with --max-factors and "
		    "--memory-mb",
		    (long long)ram);
}

/* ---- the machine ---- */

static void
limits(struct hr_fleet_exam *x)
{
	struct rlimit n;

	if (getrlimit(RLIMIT_NOFILE, &n) != 0)
		return;
	SAY(x, n.rlim_max >= FILES_MIN, "open files", "up to %llu%s",
	    (unsigned long long)n.rlim_max,
	    n.rlim_max >= FILES_MIN
		? ""
		: "; ulimit -Hn 65536, or LimitNOFILE=65536 in its unit, for some 4000 "
		  "connections");
}

/* Checks the clock: key expiry and idle pausing depend on the wall clock. */
static void
clock_(struct hr_fleet_exam *x)
{
	struct timex t = {.modes = 0};
	time_t now = time(NULL), last = 0;
	char text[64];
	HR_FREE char *path = NULL;
	struct stat st;
	struct tm tm;

	if (asprintf(&path, "%s/fleet.db", x->options->dir) < 0)
		return;
	if (stat(path, &st) == 0)
		last = st.st_mtime;
	if (gmtime_r(&now, &tm) == NULL || strftime(text, sizeof(text), "%F %T UTC", &tm) == 0)
		text[0] = '\0';
	if (now + CLOCK_SLACK_S < last)
		SAY(x, false, "clock",
		    "%s, which is before the store was written; timedatectl set-ntp true", text);
	else
		SAY(x, true, "clock", "%s%s", text,
		    adjtimex(&t) >= 0 && (t.status & STA_UNSYNC) != 0
			? ", not synchronised; timedatectl set-ntp true"
			: "");
}

/* ---- nginx ---- */

/* Appends a program's stdout. Returns its wait status, or -1. */
static int
output_of(const char *const *argv, struct hr_buf *b, struct hr_err *err)
{
	int status = 0;
	HR_CLOSE int fd = memfd_create("output", MFD_CLOEXEC);
	const struct hr_spawn_fd fds[] = {{fd, 1}};
	struct hr_spawn sp = {.path = argv[0], .argv = argv, .fds = fds, .nfds = 1, .umask = -1};
	pid_t pid;

	if (fd < 0)
		return hr_err_sys(err, errno, "memfd_create");
	pid = hr_spawn(&sp, err);
	if (pid > 0)
		(void)hr_spawn_end(pid, &status);
	if (pid > 0 && (lseek(fd, 0, SEEK_SET) != 0 || hr_path_read_fd(fd, argv[0], b, err) != 0))
		status = -1;
	return pid > 0 ? status : -1;
}

/* Has nginx test the configuration that the service would write, in a temporary directory. */
static void
try_nginx(struct hr_fleet_exam *x)
{
	char dir[] = "/tmp/handrail-fleet-XXXXXX", conf[sizeof(dir) + 16], said[1024] = "";
	const char *const argv[] = {
	    HR_NGINX_PATH, "-t", "-q", "-p", dir, "-e", "stderr", "-c", conf, NULL};
	struct hr_fleet_edge edge = *x->edge;
	struct hr_err e = {0};
	HR_BUF(b, TEXT_MAX);
	int status = -1;

	if (mkdtemp(dir) == NULL) {
		SAY(x, false, "nginx", "%s: %s", dir, strerror(errno));
		return;
	}
	edge.run_dir = dir;
	edge.socket_dir = dir;
	(void)snprintf(conf, sizeof(conf), "%s/nginx.conf", dir);
	if (hr_fleet_edge_compose(&b, "all", &edge, &e) == 0 &&
	    hr_path_write(conf, b.p, b.len, 0600, &e) == 0)
		status = hr_spawn_wait(argv, said, sizeof(said), &e);
	(void)hr_path_remove(dir, NULL);
	if (status == 0)
		SAY(x, true, "nginx", "%s takes the configuration", HR_NGINX_PATH);
	else if (access(HR_NGINX_PATH, X_OK) != 0)
		SAY(x, false, "nginx", "%s is not installed; apt-get install nginx-light",
		    HR_NGINX_PATH);
	else
		SAY(x, false, "nginx", "%s", e.msg[0] != '\0' ? e.msg : said);
}

/* Checks that nginx's configuration includes a part as it would be printed now. */
static void
included(struct hr_fleet_exam *x, const struct hr_buf *there, const char *part)
{
	struct hr_err e = {0};
	HR_BUF(b, TEXT_MAX);
	bool ok;

	if (hr_fleet_edge_compose(&b, part, x->edge, &e) != 0) {
		SAY(x, false, "nginx", "%s", e.msg);
	} else {
		ok = memmem(there->p, there->len, b.p, b.len) != NULL;
		SAY(x, ok, "nginx", "the part \"%s\" is %s%s", part,
		    ok ? "included" : "not included, or made with other options; ",
		    ok ? "" : "print it with --print-nginx, include it, and nginx -s reload");
	}
}

/* Checks that nginx's workers can connect to the socket. */
static void
workers_group(struct hr_fleet_exam *x, const char *conf)
{
	const char *line = strstr(conf, "\nuser ");
	gid_t groups[GROUPS_MAX];
	int n = GROUPS_MAX;
	char name[64] = "";
	struct passwd *pw;
	struct group *g;
	int i;

	if (line == NULL || sscanf(line, "\nuser %63[^ ;]", name) != 1 ||
	    (pw = getpwnam(name)) == NULL)
		return;
	g = x->group != NULL ? getgrnam(x->group) : NULL;
	if (getgrouplist(name, pw->pw_gid, groups, &n) < 0)
		n = GROUPS_MAX;
	for (i = 0; g != NULL && i < n; i++)
		if (groups[i] == g->gr_gid) {
			SAY(x, true, "socket", "workers of nginx (%s) may connect, as %s", name,
			    x->group);
			return;
		}
	SAY(x, false, "socket",
	    "nginx's workers (%s) cannot connect; start the service with --socket-group %s", name,
	    name);
}

static void
foreign_nginx(struct hr_fleet_exam *x)
{
	static const char *const argv[] = {HR_NGINX_PATH, "-T", "-q", NULL};
	struct hr_err e = {0};
	HR_BUF(b, TEXT_MAX);
	int status;

	status = output_of(argv, &b, &e);
	if (status != 0) {
		SAY(x, false, "nginx", "its configuration cannot be read (%s); nginx -T prints why",
		    status < 0 ? e.msg : hr_exit_words(status));
	} else {
		included(x, &b, "http");
		included(x, &b, "server");
		if (x->edge->domain != NULL)
			included(x, &b, "routes");
		workers_group(x, hr_buf_str(&b));
	}
}

static bool
answers(const char *listen)
{
	char at[HR_FLEET_PLACE];
	HR_PUT struct json_object *said = NULL;
	HR_CLEAN(hr_rest_clean) struct hr_rest *r = NULL;

	hr_fleet_edge_reach(listen, at);
	r = hr_fleet_asker(at);
	return r != NULL && hr_rest_get(r, "/alive", &said, NULL) == 0;
}

static void
listening(struct hr_fleet_exam *x, const char *at, const char *option, bool served)
{
	const char *path = strncmp(at, HR_FLEET_UNIX, strlen(HR_FLEET_UNIX)) == 0
			       ? at + strlen(HR_FLEET_UNIX)
			       : NULL;
	struct hr_err e = {0};
	bool ok;
	int fd;

	if (served) {
		ok = answers(at);
		SAY(x, ok, "listening", "%s %s", at,
		    ok ? "answers"
		       : "is not the address of the running service; give --listen as at its "
			 "start");
		return;
	}
	fd = hr_fleet_edge_listen(at, option, &e);
	hr_fd_close(&fd);
	if (path != NULL && access(path, F_OK) == 0)
		SAY(x, false, "listening",
		    "%s: another program listens there, or a killed one left the socket; rm %s, or "
		    "choose another --%s",
		    at, path, option);
	else if (e.sys == EADDRINUSE)
		SAY(x, false, "listening",
		    "%s: another program listens there; ss -ltnp prints which; or choose another "
		    "--%s",
		    at, option);
	else if (e.sys == EACCES)
		SAY(x, false, "listening",
		    "%s: ports below 1024 are root's; sysctl net.ipv4.ip_unprivileged_port_start",
		    at);
	else
		SAY(x, e.msg[0] == '\0', "listening", "%s", e.msg[0] == '\0' ? at : e.msg);
}

static void
wildcard(struct hr_fleet_exam *x)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *a = NULL;
	HR_FREE char *name = NULL;
	int why;

	if (asprintf(&name, "handrail.%s", x->edge->domain) < 0)
		return;
	why = getaddrinfo(name, NULL, &hints, &a);
	SAY(x, why == 0, "domain", "%s%s%s%s", name, why == 0 ? " has an address" : ": ",
	    why == 0 ? "" : gai_strerror(why),
	    why == 0 ? "" : "; the DNS needs a record for all names (*.) of the domain");
	if (why == 0)
		freeaddrinfo(a);
}

void
hr_fleet_doctor(struct hr_fleet_exam *x)
{
	struct hr_err e = {0};
	bool well = true, served;

	served = state_directory(x) && store(x);
	if (hr_doctor(x->options->config, x->options->environ, NULL, found, x, &well, &e) != 0)
		SAY(x, false, "sandboxes", "%s", e.msg);
	if (x->own_nginx) {
		try_nginx(x);
		listening(x, x->edge->listen, "listen", served);
		if (x->edge->console != NULL && !served)
			listening(x, x->edge->console, "console", false);
	} else {
		foreign_nginx(x);
	}
	if (x->group != NULL && getgrnam(x->group) == NULL)
		SAY(x, false, "socket", "the group %s does not exist; groupadd --system %s",
		    x->group, x->group);
	if (x->edge->domain != NULL)
		wildcard(x);
	room(x);
	limits(x);
	clock_(x);
}
