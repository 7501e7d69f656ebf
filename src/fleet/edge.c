/* Manages nginx: its configuration from the templates of the data directory, and its process, which
 * outlives a killed service. */
#include "config.h"

#include "fleet/edge.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/path.h"
#include "base/process/pid.h"
#include "base/process/spawn.h"
#include "base/text/template.h"
#include "base/text/text.h"
#include "base/strv.h"
#include "fleet/store/store.h"

#define TEXT_MAX (1u << 20)
#define FILES_MOST 8500 /* maximum per nginx worker: worker_connections, twice */
/* first descriptor of the listeners in nginx */
#define LISTEN_FD 3
#define LOCK_FD (LISTEN_FD + HR_FLEET_LISTENERS)
#define REQUESTS_FD (LOCK_FD + 1)
_Static_assert(HR_FLEET_SOCKETS_FD == REQUESTS_FD + 1, "the descriptors of nginx");
#define BACKLOG 4096
#define AWAIT_MS 300
#define SOCKET_DIRS "/run/handrail-fleet"
#define MORE_S 30 /* seconds beyond the longest wait of the service */

static int
fill(struct hr_buf *out, const struct hr_fleet_edge *e, const char *name,
    const struct hr_place *more, size_t nmore, struct hr_err *err)
{
	struct hr_place places[13] = {{"run_dir", e->run_dir, false}, {"listen", e->listen, false},
	    {"fastcgi_timeout", NULL, false}, {"socket_dir", e->socket_dir, false},
	    /* no host has a slash */
	    {"domain", e->domain != NULL ? e->domain : "/", false},
	    /* sandboxes under their own host names have cookies; requests by a path come from
	     * programs */
	    {"path_cookie", e->domain != NULL ? "$http_cookie" : "''", true},
	    {"hide_cookies", e->domain != NULL ? "" : "proxy_hide_header Set-Cookie;", true}};
	char seconds[16];
	HR_BUF(text, TEXT_MAX);
	HR_FREE char *path = NULL;
	size_t n = 7;
	size_t i;

	(void)snprintf(seconds, sizeof(seconds), "%u", e->patience_s + MORE_S);
	places[2].value = seconds;
	for (i = 0; i < nmore; i++)
		places[n++] = more[i];
	if (hr_text_setf(&path, err, "%s/%s", e->data_dir, name) != 0 ||
	    hr_path_read(path, &text, err) != 0)
		return -1;
	if (hr_template_fill(out, hr_buf_str(&text), text.len, places, n, err) != 0)
		return hr_err_prefix(err, "%s", name);
	return 0;
}

/* Appends the part for a server { } with the names of sandboxes. */
static int
compose_routes(struct hr_buf *out, const struct hr_fleet_edge *e, struct hr_err *err)
{
	return fill(out, e, "handrail-fleet-routes.conf.in", NULL, 0, err);
}

static int
compose_server(struct hr_buf *out, const struct hr_fleet_edge *e, struct hr_err *err)
{
	struct hr_place routes = {"routes", NULL, true};
	HR_BUF(b, TEXT_MAX);

	if (compose_routes(&b, e, err) != 0)
		return -1;
	routes.value = hr_buf_str(&b);
	return fill(out, e, "handrail-fleet-server.conf.in", &routes, 1, err);
}

static int
compose_wildcard(struct hr_buf *out, const struct hr_fleet_edge *e, struct hr_err *err)
{
	const char *p;

	if (e->domain == NULL)
		return 0;
	for (p = e->domain; *p != '\0'; p++)
		if (strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789.-") == 0)
			return hr_err_set(err, HR_E_INVAL,
			    "\"%.100s\" is not a domain: use small letters, digits, '.' and '-'",
			    e->domain);
	hr_buf_addf(out, "server {\nlisten %s;\nserver_name *.%s;\nserver_tokens off;\n", e->listen,
	    e->domain);
	if (compose_routes(out, e, err) != 0)
		return -1;
	hr_buf_adds(out, "}\n");
	return 0;
}

/* Appends the part for the console's server { }. */
static int
compose_console(struct hr_buf *out, const struct hr_fleet_edge *e, struct hr_err *err)
{
	const char *given = getenv("HANDRAIL_WWWDIR");
	struct hr_place place = {"www_dir", given, false};
	HR_FREE char *www = NULL;
	HR_FREE char *page = NULL;

	if (given == NULL && asprintf(&www, "%s/www", e->data_dir) < 0)
		www = NULL;
	if (given == NULL)
		place.value = www;
	if (place.value == NULL || asprintf(&page, "%s/console.html", place.value) < 0) {
		page = NULL;
		return hr_err_nomem(err);
	}
	if (access(page, R_OK) != 0)
		return hr_err_sys(err, errno,
		    "%s: the console's pages are missing; --disable-www leaves them out", page);
	return fill(out, e, "handrail-fleet-console.conf.in", &place, 1, err);
}

static int
compose_console_server(struct hr_buf *out, const struct hr_fleet_edge *e, struct hr_err *err)
{
	if (e->console == NULL)
		return 0;
	hr_buf_addf(out, "server {\nlisten %s;\nserver_name _;\n", e->console);
	if (compose_console(out, e, err) != 0)
		return -1;
	hr_buf_adds(out, "}\n");
	return 0;
}

static int
compose_all(struct hr_buf *out, const struct hr_fleet_edge *e, struct hr_err *err)
{
	HR_BUF(http, TEXT_MAX);
	HR_BUF(server, TEXT_MAX);
	HR_BUF(wildcard, TEXT_MAX);
	struct hr_place places[6] = {{"http", NULL, true}, {"server", NULL, true},
	    {"wildcard", NULL, true}, {"user", "", true}, {"files", NULL, false},
	    {"names", "", true}};
	HR_FREE char *names = NULL;
	char user[80] = "", files[24];
	struct rlimit most = {.rlim_max = FILES_MOST};

	if (e->user != NULL) {
		(void)snprintf(user, sizeof(user), "user %s;", e->user);
		places[3].value = user;
	}
	/* the default soft limit is often too low for a worker's connections */
	(void)getrlimit(RLIMIT_NOFILE, &most);
	(void)snprintf(files, sizeof(files), "%llu",
	    (unsigned long long)(most.rlim_max < FILES_MOST ? most.rlim_max : FILES_MOST));
	places[4].value = files;
	if (fill(&http, e, "handrail-fleet-http.conf.in", NULL, 0, err) != 0 ||
	    compose_server(&server, e, err) != 0 || compose_wildcard(&wildcard, e, err) != 0 ||
	    compose_console_server(&wildcard, e, err) != 0)
		return -1;
	/* these are no sandboxes: clients of the E2B API call it by the first two */
	if (e->domain != NULL) {
		if (hr_text_setf(
			&names, err, "api.%s sandbox.%s %s", e->domain, e->domain, e->domain) != 0)
			return -1;
		places[5].value = names;
	}
	places[0].value = hr_buf_str(&http);
	places[1].value = hr_buf_str(&server);
	places[2].value = hr_buf_str(&wildcard);
	return fill(out, e, "handrail-fleet.conf.in", places, 6, err);
}

int
hr_fleet_edge_compose(
    struct hr_buf *out, const char *part, const struct hr_fleet_edge *e, struct hr_err *err)
{
	int r = -1;

	if (strcmp(part, "http") == 0)
		r = fill(out, e, "handrail-fleet-http.conf.in", NULL, 0, err);
	else if (strcmp(part, "server") == 0)
		r = compose_server(out, e, err);
	else if (strcmp(part, "routes") == 0)
		r = compose_routes(out, e, err);
	else if (strcmp(part, "wildcard") == 0 && e->domain == NULL)
		r = hr_err_set(err, HR_E_INVAL, "--domain is missing");
	else if (strcmp(part, "wildcard") == 0)
		r = compose_wildcard(out, e, err);
	else if (strcmp(part, "console") == 0)
		r = compose_console(out, e, err);
	else if (strcmp(part, "all") == 0)
		r = compose_all(out, e, err);
	else
		r = hr_err_set(err, HR_E_INVAL,
		    "\"%.40s\" is not http, server, routes, wildcard, console or all", part);
	return r == 0 ? hr_buf_check(out, err) : -1;
}

/* Returns the port, and the host without brackets; "0.0.0.0" for no host and for "*". */
static const char *
split(const char *at, char host[HR_FLEET_PLACE])
{
	const char *colon = strrchr(at, ':');

	(void)snprintf(host, HR_FLEET_PLACE, "%.*s", colon != NULL ? (int)(colon - at) : 0, at);
	if (host[0] == '[' && host[strlen(host) - 1] == ']') {
		host[strlen(host) - 1] = '\0';
		memmove(host, host + 1, strlen(host));
	} else if (host[0] == '\0' || strcmp(host, "*") == 0) {
		(void)snprintf(host, HR_FLEET_PLACE, "0.0.0.0");
	}
	return colon != NULL ? colon + 1 : at;
}

bool
hr_fleet_is_unix(const char *at)
{
	return strncmp(at, HR_FLEET_UNIX, strlen(HR_FLEET_UNIX)) == 0;
}

void
hr_fleet_edge_reach(const char *at, char ret[HR_FLEET_PLACE])
{
	char host[HR_FLEET_PLACE];
	const char *port = split(at, host);

	if (hr_fleet_is_unix(at))
		(void)snprintf(ret, HR_FLEET_PLACE, "%s", at);
	else if (strcmp(host, "0.0.0.0") == 0)
		(void)snprintf(ret, HR_FLEET_PLACE, "127.0.0.1:%s", port);
	else if (strcmp(host, "::") == 0)
		(void)snprintf(ret, HR_FLEET_PLACE, "[::1]:%s", port);
	else
		(void)snprintf(ret, HR_FLEET_PLACE, "%s", at);
}

int
hr_fleet_edge_listen(const char *at, const char *option, struct hr_err *err)
{
	struct addrinfo hints = {.ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM}, *a = NULL;
	char host[HR_FLEET_PLACE];
	const char *port = split(at, host);
	int fd = -1, one = 1;

	if (strncmp(at, HR_FLEET_UNIX, strlen(HR_FLEET_UNIX)) == 0)
		return -1;
	if (getaddrinfo(host, port, &hints, &a) != 0)
		return hr_err_set(err, HR_E_INVAL,
		    "--%s takes an address and a port, such as 127.0.0.1:8000, not \"%.100s\"",
		    option, at);
	fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
	    (a->ai_family == AF_INET6 &&
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)) != 0) ||
	    bind(fd, a->ai_addr, a->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0) {
		(void)hr_err_sys(err, errno, "%s", at);
		hr_fd_close(&fd);
	}
	freeaddrinfo(a);
	return fd;
}

int
hr_fleet_edge_socket_dir(const char *state_dir, char **ret, struct hr_err *err)
{
	unsigned char sum[HR_FLEET_KEY_SUM];
	HR_FREE char *real = realpath(state_dir, NULL);
	struct stat st;

	/* the owner of the directory decides: another account may ask on behalf of an existing
	 * nginx */
	if (real != NULL && stat(real, &st) == 0 ? st.st_uid != 0 : geteuid() != 0)
		return hr_text_setf(ret, err, "%s/run", state_dir);
	hr_fleet_key_sum(real != NULL ? real : state_dir, sum);
	return hr_text_setf(ret, err, SOCKET_DIRS "/%02x%02x%02x%02x%02x%02x", sum[0], sum[1],
	    sum[2], sum[3], sum[4], sum[5]);
}

/* Makes a directory that all accounts may enter. */
static int
make_open(const char *path, struct hr_err *err)
{
	if (hr_path_mkdirs_own(path, 0711, NULL, err) != 0)
		return -1;
	/* chmod() sets the mode despite the umask */
	return chmod(path, 0711) == 0 ? 0 : hr_err_sys(err, errno, "%s", path);
}

int
hr_fleet_edge_make_dirs(const struct hr_fleet_edge *e, struct hr_err *err)
{
	HR_FREE char *sockets = NULL;

	if (hr_path_mkdirs_own(e->run_dir, 0700, NULL, err) != 0 ||
	    hr_text_setf(&sockets, err, "%s/sockets", e->run_dir) != 0 ||
	    make_open(sockets, err) != 0)
		return -1;
	if (strcmp(e->run_dir, e->socket_dir) == 0)
		return 0;
	return make_open(SOCKET_DIRS, err) == 0 ? make_open(e->socket_dir, err) : -1;
}

int
hr_fleet_edge_link(const struct hr_fleet_edge *e, struct hr_err *err)
{
	HR_FREE char *link = NULL;
	HR_FREE char *sock = NULL;

	if (strcmp(e->run_dir, e->socket_dir) == 0)
		return 0;
	if (hr_text_setf(&link, err, "%s/fleet.sock", e->run_dir) != 0 ||
	    hr_text_setf(&sock, err, "%s/fleet.sock", e->socket_dir) != 0)
		return -1;
	if ((unlink(link) != 0 && errno != ENOENT) || symlink(sock, link) != 0)
		return hr_err_sys(err, errno, "%s", link);
	return 0;
}

void
hr_fleet_edge_remove_dirs(const struct hr_fleet_edge *e)
{
	struct hr_err err = {0};

	if (strcmp(e->run_dir, e->socket_dir) != 0 && hr_path_remove(e->socket_dir, &err) != 0)
		hr_log(HR_LOG_WARNING, "%s", err.msg);
}

/* Composes run/nginx.conf, and its path, which the caller frees. */
static int
compose_file(const struct hr_fleet_edge *e, struct hr_buf *ret, char **ret_path, struct hr_err *err)
{
	return hr_text_setf(ret_path, err, "%s/nginx.conf", e->run_dir) == 0
		   ? hr_fleet_edge_compose(ret, "all", e, err)
		   : -1;
}

static int
open_lock(const struct hr_fleet_edge *e, int how, struct hr_err *err)
{
	HR_FREE char *path = NULL;
	int fd;

	if (asprintf(&path, "%s/nginx.lock", e->run_dir) < 0)
		return hr_err_nomem(err);
	fd = open(path, how | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		(void)hr_err_sys(err, errno, "%s", path);
	return fd;
}

/* Returns the process group of the lock's holders. Its number is written in the lock file; no other
 * group gets that number while one of them lives, and they cannot write the file. 0: no process
 * held it, and the caller holds it now; -1: the holders are unknown. */
static pid_t
holders(int lock)
{
	char text[24] = "";
	long group;

	if (flock(lock, LOCK_EX | LOCK_NB) == 0)
		return 0;
	group = pread(lock, text, sizeof(text) - 1, 0) > 0 ? strtol(text, NULL, 10) : 0;
	return group > 1 ? (pid_t)group : -1;
}

/* Releases the lock file: the next nginx gets a new one, so that it need not wait for this one. */
static void
let_go(const struct hr_fleet_edge *e, pid_t group, int sig)
{
	HR_FREE char *path = NULL;

	if (asprintf(&path, "%s/nginx.lock", e->run_dir) < 0)
		path = NULL;
	else
		(void)unlink(path);
	(void)kill(group, sig);
}

void
hr_fleet_edge_end(const struct hr_fleet_edge *e, pid_t nginx)
{
	let_go(e, nginx, SIGQUIT);
}

/* Returns true if a socket listens at that path: as the service is dead, that is nginx's copy of
 * the service's socket, and no other has replaced it. */
static bool
is_listened_at(const char *sock)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	HR_CLOSE int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || strlen(sock) >= sizeof(a.sun_path))
		return false;
	memcpy(a.sun_path, sock, strlen(sock) + 1);
	return connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 || errno == EAGAIN;
}

/* Returns a pidfd of the process if it belongs to that group and has not ended. */
static int
open_member(pid_t pid, pid_t group)
{
	char text[HR_PID_STAT];
	int fd = hr_pidfd_open(pid);
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (fd >= 0 &&
	    (hr_pid_field(hr_pid_stat(pid, text), HR_PID_GROUP) != (unsigned long long)group ||
		poll(&p, 1, 0) != 0))
		hr_fd_close(&fd);
	return fd;
}

/* Opens any process of the group: workers keep the sockets of a killed master. */
static int
open_any_member(pid_t group)
{
	HR_CLOSEDIR DIR *d = opendir("/proc");
	pid_t pid;
	int fd = -1;

	while (fd < 0 && (pid = hr_pid_next(d)) > 0)
		fd = open_member(pid, group);
	return fd;
}

/* Waits for the group: idle workers end at once; busy ones continue beside the next nginx. */
static void
await_group(pid_t group)
{
	int64_t until = hr_now_ms() + AWAIT_MS, left = AWAIT_MS;
	struct pollfd p = {.events = POLLIN};

	while (left > 0 && (p.fd = open_any_member(group)) >= 0) {
		(void)poll(&p, 1, (int)left);
		hr_fd_close(&p.fd);
		left = until - hr_now_ms();
	}
}

int
hr_fleet_edge_lock(const struct hr_fleet_edge *e, struct hr_err *err)
{
	int fd = open_lock(e, O_RDONLY | O_CREAT, err);
	pid_t group = fd >= 0 ? holders(fd) : 0;

	if (group > 0) {
		let_go(e, -group, SIGQUIT);
		await_group(group);
		hr_fd_close(&fd);
		fd = open_lock(e, O_RDONLY | O_CREAT | O_EXCL, err);
		group = fd >= 0 ? holders(fd) : 0;
	}
	if (group != 0) {
		(void)hr_err_set(
		    err, HR_E_BUSY, "%s/nginx.lock is held by another program", e->run_dir);
		hr_fd_close(&fd);
	}
	return fd;
}

bool
hr_fleet_edge_has_sockets(const struct hr_fleet_edge *e, pid_t nginx)
{
	HR_FREE char *dir = NULL;
	struct stat own, its;
	char link[48];

	(void)snprintf(link, sizeof(link), "/proc/%ld/fd/%d", (long)nginx, HR_FLEET_SOCKETS_FD);
	if (stat(link, &its) != 0)
		return errno != ENOENT;
	return hr_text_setf(&dir, NULL, "%s/sockets", e->run_dir) == 0 && stat(dir, &own) == 0 &&
	       own.st_dev == its.st_dev && own.st_ino == its.st_ino;
}

pid_t
hr_fleet_edge_adopt(const struct hr_fleet_edge *e, const char *sock,
    int ret_listeners[HR_FLEET_LISTENERS], int *ret_requests)
{
	HR_CLOSE int lock = open_lock(e, O_RDONLY, NULL);
	HR_CLOSE int pidfd = -1;
	pid_t group = lock >= 0 ? holders(lock) : 0;
	bool lives;
	int i;

	if (group <= 0)
		return -1;
	pidfd = open_member(group, group);
	lives = pidfd >= 0;
	if (!lives)
		pidfd = open_any_member(group);
	if (pidfd < 0)
		return -1;
	if (is_listened_at(sock))
		*ret_requests = hr_pid_listener(pidfd, REQUESTS_FD);
	for (i = 0; i < HR_FLEET_LISTENERS; i++)
		ret_listeners[i] = hr_pid_listener(pidfd, LISTEN_FD + i);
	return lives && hr_fleet_edge_has_sockets(e, group) ? group : -1;
}

/* Runs before the process executes nginx. */
static void
note_group(void *arg, pid_t pid)
{
	const int *note = arg;
	char text[24];

	(void)snprintf(text, sizeof(text), "%-20ld\n", (long)pid);
	(void)hr_fd_pwrite_full(*note, text, strlen(text), 0);
}

pid_t
hr_fleet_edge_start(const struct hr_fleet_edge *e, int lock, int requests,
    const int listeners[HR_FLEET_LISTENERS], struct hr_err *err)
{
	struct hr_spawn_fd fds[4 + HR_FLEET_LISTENERS] = {
	    {2, 2}, {lock, LOCK_FD}, {requests, REQUESTS_FD}};
	char inherited[sizeof("NGINX=") + HR_FLEET_LISTENERS * sizeof("3;")] = "NGINX=";
	size_t nfds = 3, n = strlen(inherited);
	HR_CLEAN(hr_strv_done) struct hr_strv env = {0};
	HR_BUF(conf, TEXT_MAX);
	HR_FREE char *path = NULL;
	HR_FREE char *dir = NULL;
	HR_CLOSE int sockets = -1;
	HR_CLOSE int note = -1;
	pid_t pid = -1;
	int i;

	hr_strv_add_all(&env, (const char *const *)environ);
	for (i = 0; i < HR_FLEET_LISTENERS; i++) {
		if (listeners[i] < 0)
			continue;
		fds[nfds++] = (struct hr_spawn_fd){listeners[i], LISTEN_FD + i};
		n += (size_t)snprintf(inherited + n, sizeof(inherited) - n, "%d;", LISTEN_FD + i);
	}
	if (nfds > 3)
		hr_strv_set_env(&env, inherited);
	if (env.failed)
		return hr_err_nomem(err);
	if (hr_text_setf(&dir, err, "%s/sockets", e->run_dir) != 0)
		return -1;
	sockets = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (sockets < 0)
		return hr_err_sys(err, errno, "%s", dir);
	fds[nfds++] = (struct hr_spawn_fd){sockets, HR_FLEET_SOCKETS_FD};
	if (compose_file(e, &conf, &path, err) == 0 &&
	    hr_path_write(path, conf.p, conf.len, 0600, err) == 0 &&
	    (note = open_lock(e, O_WRONLY, err)) >= 0) {
		const char *const argv[] = {
		    "nginx", "-p", e->run_dir, "-e", "stderr", "-c", path, NULL};
		/* nginx outlives this process: answers of sandboxes continue, and new requests for
		 * the service wait in its socket's queue for the next one */
		struct hr_spawn sp = {.path = HR_NGINX_PATH,
		    .argv = argv,
		    .envp = env.v,
		    .fds = fds,
		    .nfds = nfds,
		    .setsid = true,
		    .umask = -1,
		    .forked = note_group,
		    .arg = &note};

		pid = hr_spawn(&sp, err);
	}
	return pid;
}

int
hr_fleet_edge_reload(const struct hr_fleet_edge *e, pid_t nginx, struct hr_err *err)
{
	HR_BUF(conf, TEXT_MAX);
	HR_BUF(there, TEXT_MAX);
	HR_FREE char *path = NULL;

	if (compose_file(e, &conf, &path, err) != 0)
		return -1;
	if (hr_path_read(path, &there, NULL) == 0 && there.len == conf.len &&
	    memcmp(there.p, conf.p, conf.len) == 0)
		return 0;
	if (hr_path_write(path, conf.p, conf.len, 0600, err) != 0)
		return -1;
	return nginx < 0 || kill(nginx, SIGHUP) == 0 ? 1 : hr_err_sys(err, errno, "nginx");
}
