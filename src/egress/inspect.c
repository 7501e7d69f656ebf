/* The nginx of a broker. It has no network: each of its ways leads back to the broker, which is the
 * only one that resolves and connects. It ends with the broker. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <json-c/json_object.h>

#include "base/account.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/process/pid.h"
#include "base/random.h"
#include "egress/broker_int.h"
#include "egress/edge.h"
#include "proto/json.h"

#define HOSTS_MAX 64
#define CONFIG_MAX (64u << 20)
#define RELOAD_MS 1000 /* time between two reloads that the box causes, and more for each host: */
#define RELOAD_HOST_MS 100
#define READY_MS 15000
#define TRY_MS 5
#define LINES 64 /* lines of the access log in one iteration */

struct host {
	struct egress_inspect *i;
	struct egress_host h;
	char name[EGRESS_NAME_MAX + 1];
	int out; /* -1: not prepared */
	struct hr_watch *accepts;
	struct egress_wait *waits;
	int64_t until; /* end of the wait */
	int64_t used;  /* time of the last connection */
};

struct egress_inspect {
	struct egress_broker *b;
	char *dir;
	struct host *hosts[HOSTS_MAX];
	size_t n;
	unsigned next_id;
	struct hr_watch *timer, *ended, *logs;
	pid_t pid; /* nginx; -1: none */
	int pidfd, log, alive[2];
	bool dirty;  /* nginx does not know all hosts */
	int64_t may; /* time of the next reload */
};

static void
edge_path(char ret[64], const char *what, unsigned id)
{
	(void)snprintf(ret, 64, "edge/%s-%u", what, id);
}

static int
edge_socket(const char *path, int type, bool listens)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	HR_CLOSE int fd = socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (listens)
		(void)unlink(path);
	if (fd < 0 || (listens ? bind : connect)(fd, (struct sockaddr *)&a, sizeof(a)) != 0 ||
	    (listens && type == SOCK_STREAM && listen(fd, SOMAXCONN) != 0))
		return -1;
	r = fd;
	fd = -1;
	return r;
}

/* ---- waiting connections ---- */

void
egress_inspect_cancel(struct egress_wait *w)
{
	if (w->at == NULL)
		return;
	*w->at = w->next;
	if (w->next != NULL)
		w->next->at = w->at;
	w->at = NULL;
}

static void
answer(struct egress_wait *w, int fd, const char *why)
{
	egress_inspect_cancel(w);
	w->fn(w->arg, fd, why);
}

static void
drop_host(struct egress_inspect *i, size_t at, const char *why)
{
	struct host *h = i->hosts[at];
	char path[64];

	i->hosts[at] = i->hosts[--i->n];
	edge_path(path, "out", h->h.id);
	(void)unlink(path);
	while (h->waits != NULL)
		answer(h->waits, -1, why);
	hr_watch_free(h->accepts);
	hr_fd_close(&h->out);
	free(h);
}

/* ---- nginx ---- */

/* Makes everything but DIR read-only, in the mount namespace of this process alone. */
static int
protect_files(const char *dir)
{
	struct mount_attr read_only = {.attr_set = MOUNT_ATTR_RDONLY};
	struct mount_attr writable = {.attr_clr = MOUNT_ATTR_RDONLY};

	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
		       mount(dir, dir, NULL, MS_BIND, NULL) != 0 ||
		       syscall(SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &read_only,
			   sizeof(read_only)) != 0 ||
		       syscall(SYS_mount_setattr, AT_FDCWD, dir, 0, &writable, sizeof(writable)) !=
			   0
		   ? -1
		   : chdir(dir);
}

/* Gives up all capabilities for good. */
static int
drop_rights(void)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
	int v;

	for (v = 0; prctl(PR_CAPBSET_READ, v, 0, 0, 0) >= 0; v++)
		(void)prctl(PR_CAPBSET_DROP, v, 0, 0, 0);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ? -1
							   : (int)syscall(SYS_capset, &head, none);
}

static void __attribute__((noreturn)) become_nginx(const struct egress_inspect *i, bool own_mounts)
{
	/* Root's workers stay root without capabilities: other services could read the memory of
	 * any account that they share. */
	const char *const argv[] = {"nginx", "-p", i->dir, "-c", "nginx.conf",
	    hr_account_is_root() ? "-g" : NULL, "user root;", NULL};
	static char *const none[] = {NULL};
	struct pollfd parent = {.fd = i->alive[0]};
	sigset_t set;
	int null = open("/dev/null", O_RDWR);

	(void)close(i->alive[1]);
	/* this also ends the workers, with the namespace of the processes */
	if ((own_mounts && protect_files(i->dir) != 0) || drop_rights() != 0 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || poll(&parent, 1, 0) != 0 ||
	    chdir("edge") != 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0)
		_exit(1);
	hr_fd_close_from(3);
	(void)signal(SIGPIPE, SIG_DFL);
	(void)signal(SIGHUP, SIG_DFL);
	(void)sigemptyset(&set);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	(void)execve(HR_NGINX_PATH, (char *const *)argv, none);
	_exit(1);
}

static pid_t
clone_nginx(struct egress_inspect *i, uint64_t namespaces)
{
	struct clone_args a = {.flags = namespaces | CLONE_PIDFD,
	    .pidfd = (uint64_t)(uintptr_t)&i->pidfd,
	    .exit_signal = SIGCHLD};
	pid_t pid = (pid_t)syscall(SYS_clone3, &a, sizeof(a));

	if (pid == 0)
		become_nginx(i, (namespaces & CLONE_NEWNS) != 0);
	return pid;
}

static void
on_ended(void *arg)
{
	struct egress_inspect *i = arg;
	size_t k;

	hr_watch_drop(&i->ended);
	hr_fd_close(&i->pidfd);
	(void)waitpid(i->pid, NULL, 0);
	i->pid = -1;
	i->dirty = i->n > 0;
	for (k = 0; k < i->n && !i->b->retired; k++)
		if (i->hosts[k]->waits != NULL)
			(void)hr_watch_arm(i->timer, 0, NULL);
}

/* Starts nginx without a network where that is possible. When the first process of its namespace
 * ends, the kernel ends all others. */
static int
start(struct egress_inspect *i, struct hr_err *err)
{
	uint64_t apart =
	    CLONE_NEWNET | CLONE_NEWPID | (hr_account_is_root() ? CLONE_NEWNS : CLONE_NEWUSER);
	static const char *const made[] = {"in", "mid"};
	char path[64];
	size_t k, m;

	/* nginx does not replace a socket that a killed one has left */
	for (k = 0; k < i->n; k++)
		for (m = 0; m < 2; m++) {
			edge_path(path, made[m], i->hosts[k]->h.id);
			(void)unlink(path);
		}
	i->pid = clone_nginx(i, apart);
	if (i->pid < 0)
		i->pid = clone_nginx(i, 0);
	if (i->pid < 0)
		return hr_err_sys(err, errno, "start nginx");
	i->ended = hr_loop_readable(i->b->loop, i->pidfd, on_ended, i, err);
	return i->ended != NULL ? 0 : -1;
}

static int64_t
reload_ms(const struct egress_inspect *i)
{
	return RELOAD_MS + RELOAD_HOST_MS * (int64_t)i->n;
}

/* Writes the configuration. */
static int
configure(struct egress_inspect *i, const struct egress_host *v, size_t n, struct hr_err *err)
{
	HR_BUF(text, CONFIG_MAX);

	return egress_edge_config(
		   i->b->policy, i->dir, v, n, i->b->secrets, i->b->placeholders, &text, err) < 0 ||
		       hr_buf_check(&text, err) < 0
		   ? -1
		   : hr_path_write("nginx.conf", hr_buf_str(&text), text.len, 0600, err);
}

static int
apply(struct egress_inspect *i, struct hr_err *err)
{
	i->dirty = false;
	i->may = hr_now_ms() + reload_ms(i);
	if (i->pid < 0)
		return start(i, err);
	(void)hr_pid_signal(i->pidfd, SIGHUP);
	return 0;
}

/* ---- hosts ---- */

static void
on_out(void *arg)
{
	struct host *h = arg;
	int fd = hr_fd_accept(h->out, SOCK_NONBLOCK, h->i->b->held->box);

	h->used = hr_now_ms();
	if (fd >= 0)
		egress_conn_out(h->i->b, fd, h->name, h->h.port);
}

static int
prepare(struct host *h, struct hr_err *err)
{
	struct egress_inspect *i = h->i;
	char path[64];

	if (h->h.tls && egress_authority_certify(i->dir, h->name, err) < 0)
		return -1;
	edge_path(path, "out", h->h.id);
	h->out = edge_socket(path, SOCK_STREAM, true);
	if (h->out < 0)
		return hr_err_sys(err, errno, "listen on %s", path);
	h->accepts = hr_loop_readable(i->b->loop, h->out, on_out, h, err);
	return h->accepts != NULL ? 0 : -1;
}

/* Removes the certificates of hosts that are no longer served, of which the box could make any
 * number. */
static void
drop_certificates(const struct egress_inspect *i)
{
	HR_CLOSEDIR DIR *d = opendir("certs");
	const struct dirent *e;
	const char *end;
	size_t k;

	while (d != NULL && (e = hr_dir_next(d)) != NULL) {
		end = strrchr(e->d_name, '.');
		for (k = 0; end != NULL && k < i->n; k++)
			if (strlen(i->hosts[k]->name) == (size_t)(end - e->d_name) &&
			    strncmp(i->hosts[k]->name, e->d_name, (size_t)(end - e->d_name)) == 0)
				break;
		if (end != NULL && k == i->n)
			(void)unlinkat(dirfd(d), e->d_name, 0);
	}
}

/* Prepares new hosts, and lets nginx know them. */
static void
bring_up(struct egress_inspect *i, int64_t now)
{
	struct egress_host v[HOSTS_MAX];
	struct hr_err e = {0};
	size_t k;

	if (now < i->may)
		return;
	for (k = i->n; k-- > 0;)
		if (i->hosts[k]->out < 0) {
			if (prepare(i->hosts[k], &e) < 0)
				drop_host(i, k, e.msg);
			else
				i->dirty = true;
		}
	if (!i->dirty)
		return;
	drop_certificates(i);
	for (k = 0; k < i->n; k++)
		v[k] = i->hosts[k]->h;
	if (configure(i, v, i->n, &e) == 0 && apply(i, &e) == 0)
		return;
	i->may = now + reload_ms(i);
	for (k = i->n; k-- > 0;)
		if (i->hosts[k]->waits != NULL)
			drop_host(i, k, e.msg);
}

static void
on_tick(void *arg)
{
	struct egress_inspect *i = arg;
	int64_t now = hr_now_ms();
	bool waits = false;
	char path[64];
	size_t k;
	int fd;

	bring_up(i, now);
	for (k = i->n; k-- > 0;) {
		struct host *h = i->hosts[k];

		edge_path(path, "in", h->h.id);
		while (h->waits != NULL && i->pid >= 0 &&
		       (fd = edge_socket(path, SOCK_STREAM, false)) >= 0)
			answer(h->waits, fd, NULL);
		while (h->waits != NULL && now >= h->until)
			answer(h->waits, -1, "nginx does not serve this host");
		waits = waits || h->waits != NULL;
	}
	if (waits)
		(void)hr_watch_arm(i->timer, TRY_MS, NULL);
}

/* Drops the host that was used longest ago, if the table is full. Nobody waits for it. One for
 * which nobody has waited long enough comes before all others. */
static void
make_room(struct egress_inspect *i)
{
	int64_t used, least = INT64_MAX;
	size_t k, at = i->n;

	for (k = 0; k < i->n && i->n == HOSTS_MAX; k++) {
		used = i->hosts[k]->out < 0 ? 0 : i->hosts[k]->used;
		if (i->hosts[k]->waits == NULL && used < least) {
			least = used;
			at = k;
		}
	}
	if (at < i->n)
		drop_host(i, at, NULL);
}

static struct host *
find(struct egress_inspect *i, const char *name, int port, bool tls)
{
	struct host *h;
	size_t k;

	for (k = 0; k < i->n; k++) {
		h = i->hosts[k];
		if (h->h.port == port && h->h.tls == tls && strcmp(h->name, name) == 0)
			return h;
	}
	make_room(i);
	h = i->n < HOSTS_MAX ? calloc(1, sizeof(*h)) : NULL;
	if (h == NULL)
		return NULL;
	(void)snprintf(h->name, sizeof(h->name), "%s", name);
	h->i = i;
	h->out = -1;
	h->h = (struct egress_host){i->next_id++, h->name, port, tls};
	i->hosts[i->n++] = h;
	return h;
}

bool
egress_inspect(
    struct egress_inspect *i, struct egress_wait *w, const char *name, int port, bool tls)
{
	struct host *h = i->b->retired ? NULL : find(i, name, port, tls);

	if (h == NULL)
		return false;
	h->used = hr_now_ms();
	if (h->waits == NULL)
		h->until = h->used + READY_MS;
	w->next = h->waits;
	w->at = &h->waits;
	if (w->next != NULL)
		w->next->at = &w->next;
	h->waits = w;
	return hr_watch_arm(i->timer, 0, NULL) == 0;
}

int
egress_inspect_reload(struct egress_inspect *i, struct hr_err *err)
{
	struct egress_host v[HOSTS_MAX];
	struct egress_decision d;
	size_t k, n = 0;

	for (k = 0; k < i->n; k++) {
		v[n] = i->hosts[k]->h;
		egress_policy_name(i->b->policy, v[n].name, v[n].port, &d);
		/* the number differs, since nginx may judge by the earlier rules for a while */
		if (d.verdict == EGRESS_INSPECT)
			v[n++].id = i->next_id + (unsigned)k;
	}
	/* the files belong to the next broker, then */
	if (i->n == 0 || i->b->retired)
		return 0;
	if (configure(i, v, n, err) < 0)
		return -1;
	for (k = i->n; k-- > 0;) {
		struct host *h = i->hosts[k];

		hr_watch_drop(&h->accepts);
		hr_fd_close(&h->out);
		h->h.id = i->next_id + (unsigned)k;
		egress_policy_name(i->b->policy, h->name, h->h.port, &d);
		if (d.verdict != EGRESS_INSPECT)
			drop_host(i, k, "the rules have changed");
		else if (prepare(h, err) < 0)
			drop_host(i, k, err->msg);
	}
	i->next_id += HOSTS_MAX;
	return i->pid >= 0 ? apply(i, err) : 0;
}

void
egress_inspect_retire(struct egress_inspect *i)
{
	size_t k;

	for (k = 0; k < i->n; k++)
		while (i->hosts[k]->waits != NULL)
			answer(i->hosts[k]->waits, -1, "the broker was replaced");
	/* nginx finishes the requests that it has, and reads no others */
	if (i->pid >= 0)
		(void)hr_pid_signal(i->pidfd, SIGQUIT);
}

/* ---- the access log ---- */

static void
log_request(struct egress_inspect *i, const char *p, size_t len)
{
	const char *at = memchr(p, '{', len);
	HR_PUT struct json_object *o = NULL;
	int64_t id;
	size_t k;

	if (at == NULL || hr_json_decode(at, len - (size_t)(at - p), &o, NULL) < 0)
		return;
	id = hr_json_int_at(o, "id");
	for (k = 0; k < i->n && i->hosts[k]->h.id != id; k++)
		;
	if (k == i->n)
		return;
	egress_log_add(i->b->log, &(const struct egress_event){.allow = !hr_json_true_at(o, "deny"),
				      .kind = "http",
				      .name = i->hosts[k]->name,
				      .port = i->hosts[k]->h.port,
				      .method = hr_json_text_at(o, "method"),
				      .path = hr_json_text_at(o, "path"),
				      .rule = hr_json_text_at(o, "rule")});
}

static void
on_log(void *arg)
{
	struct egress_inspect *i = arg;
	char line[8192];
	ssize_t n;
	unsigned k;

	for (k = 0; k < LINES && (n = recv(i->log, line, sizeof(line), MSG_DONTWAIT)) >= 0; k++)
		log_request(i, line, (size_t)n);
}

struct egress_inspect *
egress_inspect_new(struct egress_broker *b, struct hr_err *err)
{
	struct egress_inspect *i = calloc(1, sizeof(*i));

	if (i == NULL)
		return hr_err_null(err);
	i->b = b;
	i->pid = i->pidfd = -1;
	/* a retired broker still has its own sockets */
	if (hr_random(&i->next_id, sizeof(i->next_id), err) < 0)
		return NULL;
	i->next_id >>= 1;
	i->dir = hr_path_absolute(".", err);
	i->timer = hr_loop_timer(b->loop, on_tick, i, err);
	if (i->dir == NULL || i->timer == NULL)
		return NULL;
	if ((mkdir("edge", 0700) != 0 && errno != EEXIST) || chmod("edge", 0700) != 0 ||
	    pipe2(i->alive, O_CLOEXEC) != 0 ||
	    (i->log = edge_socket("edge/log", SOCK_DGRAM, true)) < 0) {
		(void)hr_err_sys(err, errno, "the directory edge");
		return NULL;
	}
	i->logs = hr_loop_readable(b->loop, i->log, on_log, i, err);
	return i->logs != NULL ? i : NULL;
}
