/* handrail-forward: carries connections of a port of 127.0.0.1 to the server or the editor of a
 * box, which no browser reaches, and ends with the box (doc/host.md, "The back-end box"). The
 * caller is src/host/sidecar/forward.c.
 *
 * A client must show the server the session key, and the editor its token. A web page of a name
 * that its owner has pointed to 127.0.0.1 gets nothing, since the first request of each connection
 * must have this port and one of its own names as its Host: a browser never sends requests for two
 * names on one connection. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/loop.h"
#include "base/process/pid.h"
#include "base/tunnel.h"

/* descriptors that the caller passes, besides standard output for the line with the port, and
 * standard error, which this process closes as soon as it serves */
#define BOX 3    /* pidfd of the box's first process */
#define SERVER 4 /* the server's socket file, opened with O_PATH */

#define PAIRS_MAX 256
/* Connections of other accounts of the machine. Their clients may have the key, too, as a proxy
 * that its owner has set up; but silent ones must leave room for those of the owner. */
#define OTHERS_MAX 64
#define FILES_MAX 64   /* descriptors besides those of pairs */
#define LINGER_MS 5000 /* time for a client to read the end of the last answer */
#define HALF_MS 60000  /* time for the rest of the answer to a client that sends no more */
#define HEAD_MS 10000  /* time for the head of the first request, as the server gives */

struct pair {
	struct forward *f;
	struct hr_tunnel *tunnel;
	struct hr_watch *head; /* the time for the head of the first request */
	bool other;            /* the client is another account's, or unknown */
};

struct forward {
	struct hr_loop *loop;
	struct hr_watch *end, *clients; /* `clients` is NULL while there is no room for more */
	int listener, port, peers;      /* `peers` is for questions about clients; -1: none */
	uid_t owner;
	bool editor; /* leads to the same port in the box's network, not to the server's socket */
	size_t npairs, nothers;
};

static void on_client(void *arg);

static void
pair_free(void *arg)
{
	struct pair *c = arg;
	struct forward *f = c->f;

	f->nothers -= c->other;
	hr_watch_free(c->head);
	hr_tunnel_free(c->tunnel);
	free(c);
	f->npairs--;
	if (f->clients == NULL)
		f->clients = hr_loop_readable(f->loop, f->listener, on_client, f, NULL);
}

/* ---- the first request ---- */

static bool
names_port(const char *value, size_t len, int port)
{
	static const char *const hosts[] = {"127.0.0.1", "localhost"};
	char want[32];
	size_t i, n;

	for (; len > 0 && *value == ' '; len--)
		value++;
	while (len > 0 && value[len - 1] == ' ')
		len--;
	for (i = 0; i < 2; i++) {
		n = (size_t)snprintf(want, sizeof(want), "%s:%d", hosts[i], port);
		if (n == len && strncasecmp(value, want, n) == 0)
			return true;
		n = strlen(hosts[i]);
		if (port == 80 && n == len && strncasecmp(value, hosts[i], n) == 0)
			return true;
	}
	return false;
}

/* Reads the lines of a head as the server does, which takes a line feed alone as a line's end.
 * Returns 1 if the only Host is that of the port, 0 if not, or -1 if the head is not complete. */
static int
check(const char *p, size_t len, int port)
{
	const char *end;
	size_t n, hosts = 0, good = 0;

	for (; (end = memchr(p, '\n', len)) != NULL; len -= n + 1, p = end + 1) {
		n = (size_t)(end - p);
		if (n == 0 || (n == 1 && *p == '\r'))
			return hosts == 1 && good == 1;
		if (n < 5 || strncasecmp(p, "host:", 5) != 0)
			continue;
		hosts++;
		good += names_port(p + 5, n - 5 - (p[n - 1] == '\r'), port);
	}
	return -1;
}

static void
refuse(struct pair *c)
{
	static const char body[] = "{\"detail\":\"The address has another name than 127.0.0.1 or "
				   "localhost with this port\"}";
	char text[512];
	int n = snprintf(text, sizeof(text),
	    "HTTP/1.1 403 Forbidden\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n"
	    "Connection: close\r\n\r\n%s",
	    sizeof(body) - 1, body);

	hr_tunnel_answer(c->tunnel, text, (size_t)n);
}

/* Connects to the server by its open file, which stays the same whatever a program in the box puts
 * in its place; or to the editor, in the network of the box. Returns -1 if that fails at once. */
static int
connect_to(const struct forward *f)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	struct sockaddr_in in = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)f->port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	const struct sockaddr *to = f->editor ? (void *)&in : (void *)&un;
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)snprintf(un.sun_path, sizeof(un.sun_path), "/proc/self/fd/%d", SERVER);
	if (fd >= 0 && connect(fd, to, f->editor ? sizeof(in) : sizeof(un)) < 0 &&
	    errno != EINPROGRESS)
		hr_fd_close(&fd);
	return fd;
}

/* Leads a client whose request may pass to the server. */
static enum hr_tunnel_look
look(void *arg, const char *p, size_t len, bool last)
{
	struct pair *c = arg;
	int r = check(p, len, c->f->port), server;

	if (r < 0 && !last)
		return HR_TUNNEL_MORE;
	hr_watch_disarm(c->head);
	if (r <= 0) {
		refuse(c);
		return HR_TUNNEL_OVER;
	}
	server = connect_to(c->f);
	if (server < 0) {
		pair_free(c);
		return HR_TUNNEL_OVER;
	}
	hr_tunnel_lead(c->tunnel, server);
	return HR_TUNNEL_PASS;
}

/* ---- connections ---- */

/* Asks the kernel's table of sockets for the client's own end of an accepted IPv4 connection.
 * Returns true if it has that account, or is root. Returns false for a client that has ended, and
 * where the kernel does not report it. Does not block. */
static bool
peer_is(int questions, int client, uid_t uid)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 of;
	} q = {.head = {.nlmsg_len = sizeof(q),
		   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
		   .nlmsg_flags = NLM_F_REQUEST},
	    .of = {.sdiag_family = AF_INET,
		.sdiag_protocol = IPPROTO_TCP,
		.idiag_states = UINT32_MAX,
		.id.idiag_cookie = {INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE}}};
	struct {
		struct nlmsghdr head;
		struct inet_diag_msg of;
		char more[1024];
	} a = {.head.nlmsg_type = NLMSG_ERROR};
	struct sockaddr_in its, own;
	socklen_t nits = sizeof(its), nown = sizeof(own);
	ssize_t n;

	if (getpeername(client, (struct sockaddr *)&its, &nits) < 0 ||
	    getsockname(client, (struct sockaddr *)&own, &nown) < 0)
		return false;
	q.of.id.idiag_src[0] = its.sin_addr.s_addr;
	q.of.id.idiag_sport = its.sin_port;
	q.of.id.idiag_dst[0] = own.sin_addr.s_addr;
	q.of.id.idiag_dport = own.sin_port;
	/* the kernel answers within send() */
	if (send(questions, &q, sizeof(q), MSG_DONTWAIT) < 0)
		return false;
	n = recv(questions, &a, sizeof(a), MSG_DONTWAIT);
	/* a socket that its process has closed has no inode, and no account either */
	return n >= (ssize_t)(sizeof(a.head) + sizeof(a.of)) &&
	       a.head.nlmsg_type == SOCK_DIAG_BY_FAMILY && a.of.id.idiag_sport == its.sin_port &&
	       a.of.idiag_inode != 0 && (a.of.idiag_uid == uid || a.of.idiag_uid == 0);
}

static void
on_client(void *arg)
{
	struct forward *f = arg;
	int client = hr_fd_accept(f->listener, SOCK_NONBLOCK, BOX);
	bool other = client >= 0 && !peer_is(f->peers, client, f->owner);
	struct pair *c = client >= 0 ? calloc(1, sizeof(*c)) : NULL;

	if (c == NULL || (other && f->nothers == OTHERS_MAX)) {
		free(c);
		hr_fd_close(&client);
		return;
	}
	c->f = f;
	c->other = other;
	f->nothers += other;
	c->head = hr_loop_timer(f->loop, pair_free, c, NULL);
	c->tunnel = hr_tunnel_new(f->loop,
	    &(const struct hr_tunnel_with){.client = client,
		.look = look,
		.ended = pair_free,
		.arg = c,
		.linger_ms = LINGER_MS,
		.half_ms = HALF_MS},
	    NULL);
	if (++f->npairs == PAIRS_MAX)
		hr_watch_drop(&f->clients);
	if (c->tunnel == NULL)
		hr_fd_close(&client);
	if (c->tunnel == NULL || c->head == NULL || hr_watch_arm(c->head, HEAD_MS, NULL) < 0)
		pair_free(c);
}

/* ---- start ---- */

/* Listens on 127.0.0.1 alone. */
static int
listen_there(struct forward *f, int port, struct hr_err *err)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
	    .sin_port = htons((uint16_t)port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof(a);
	int on = 1;

	f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (f->listener < 0 ||
	    setsockopt(f->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
	    bind(f->listener, (struct sockaddr *)&a, n) < 0 || listen(f->listener, SOMAXCONN) < 0 ||
	    getsockname(f->listener, (struct sockaddr *)&a, &n) < 0)
		return hr_err_sys(err, errno, "listen on port %d of 127.0.0.1", port);
	f->port = ntohs(a.sin_port);
	return 0;
}

/* Enters the network of the box; its sockets made before stay in that of the machine. The owner of
 * a user namespace may do so only from inside it. */
static int
enter_network(struct hr_err *err)
{
	return setns(BOX, CLONE_NEWNET) == 0 || setns(BOX, CLONE_NEWUSER | CLONE_NEWNET) == 0
		   ? 0
		   : hr_err_sys(err, errno, "enter the network of the box");
}

/* Gives up the rights of root, which this process had for the network of the box: the owner of a
 * server's socket connects without them. */
static int
drop_rights(struct hr_err *err)
{
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {{0}};
	unsigned long i;

	/* only root may leave its groups, and they give it nothing */
	(void)setgroups(0, NULL);
	for (i = 0; prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		(void)prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &head, none) < 0)
		return hr_err_sys(err, errno, "give up rights");
	return 0;
}

/* Raises the limit of descriptors, of which each pair has two: without one the loop would wait for
 * the end of a pair. */
static void
raise_files(void)
{
	const rlim_t wanted = 2 * PAIRS_MAX + FILES_MAX;
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) == 0 && lim.rlim_cur < wanted) {
		lim.rlim_cur = lim.rlim_max < wanted ? lim.rlim_max : wanted;
		(void)setrlimit(RLIMIT_NOFILE, &lim);
	}
}

/* Records this process for the caller and for later ones. The record's lock, which standard output
 * has, is released after that. */
static int
record(int port, struct hr_err *err)
{
	char line[128];
	int n = snprintf(line, sizeof(line), "{\"pid\":%ld,\"started\":%llu,\"port\":%d}\n",
	    (long)getpid(), hr_pid_started(getpid()), port);

	if (hr_fd_write_full(STDOUT_FILENO, line, (size_t)n, err) < 0)
		return -1;
	hr_fd_close(&(int){STDOUT_FILENO});
	hr_fd_close(&(int){STDERR_FILENO});
	return hr_fd_open_stdio(err);
}

static void
on_end(void *arg)
{
	hr_loop_stop(arg);
}

static int
serve(struct forward *f, struct hr_err *err)
{
	f->loop = hr_loop_new(err);
	if (f->loop == NULL)
		return -1;
	f->end = hr_loop_readable(f->loop, BOX, on_end, f->loop, err);
	f->clients = hr_loop_readable(f->loop, f->listener, on_client, f, err);
	if (f->end == NULL || f->clients == NULL || record(f->port, err) < 0)
		return -1;
	return hr_loop_run(f->loop, err);
}

static int
start(struct forward *f, int port, struct hr_err *err)
{
	f->owner = getuid();
	f->peers = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	raise_files();
	if (listen_there(f, port, err) < 0 || (f->editor && enter_network(err) < 0) ||
	    drop_rights(err) < 0)
		return -1;
	return chdir("/") == 0 ? 0 : hr_err_sys(err, errno, "enter /");
}

int
main(int argc, char **argv)
{
	static struct forward f = {.listener = -1, .peers = -1};
	struct hr_err e = {0};
	char *end = NULL;
	long port = argc == 3 ? strtol(argv[2], &end, 10) : -1;
	pid_t pid;

	f.editor = argc == 3 && strcmp(argv[1], "editor") == 0;
	if (end == NULL || *end != '\0' || end == argv[2] || port < f.editor || port > 65535 ||
	    (!f.editor && strcmp(argv[1], "server") != 0)) {
		(void)fputs(
		    "usage: handrail-forward server|editor PORT\nlibhandrail runs this, with "
		    "descriptors; PORT is that of the editor in the box, too, or 0 for any free "
		    "port\n",
		    stderr);
		return 2;
	}
	if (start(&f, (int)port, &e) == 0) {
		pid = fork();
		if (pid > 0)
			return 0;
		if (pid < 0)
			(void)hr_err_sys(&e, errno, "fork");
		else if (setsid() >= 0 && serve(&f, &e) == 0)
			return 0;
	}
	(void)fprintf(stderr, "%s\n", e.msg);
	return 1;
}
