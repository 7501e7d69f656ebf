/* The kernel looks one connection up by its four numbers: no list is read, however many connections
 * there are. */
#include "config.h"

#include "base/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/path.h"

#define ADDRESS INET6_ADDRSTRLEN
#define LISTENING " 0A " /* the state; no other field of a line looks like this */
#define TABLE_MAX (16u << 20)
#define ANSWER 512 /* one message and its attributes; no attributes are requested */

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 req;
};

bool
hr_peer_parse(const char *text, struct hr_peer *ret)
{
	char remote[ADDRESS], local[ADDRESS];
	unsigned remote_port, local_port;

	memset(ret, 0, sizeof(*ret));
	if (sscanf(text, "%45s %5u %45s %5u", remote, &remote_port, local, &local_port) != 4 ||
	    remote_port > UINT16_MAX || local_port > UINT16_MAX)
		return false;
	ret->family = strchr(remote, ':') != NULL ? AF_INET6 : AF_INET;
	ret->remote_port = htons((uint16_t)remote_port);
	ret->local_port = htons((uint16_t)local_port);
	return inet_pton(ret->family, remote, ret->remote) == 1 &&
	       inet_pton(ret->family, local, ret->local) == 1;
}

static void
question_fill(struct question *q, const struct hr_peer *p)
{
	memset(q, 0, sizeof(*q));
	q->head.nlmsg_len = sizeof(*q);
	q->head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
	q->head.nlmsg_flags = NLM_F_REQUEST;
	q->req.sdiag_family = p->family;
	q->req.sdiag_protocol = IPPROTO_TCP;
	q->req.idiag_states = UINT32_MAX;
	q->req.id.idiag_sport = p->local_port;
	q->req.id.idiag_dport = p->remote_port;
	memcpy(q->req.id.idiag_src, p->local, sizeof(p->local));
	memcpy(q->req.id.idiag_dst, p->remote, sizeof(p->remote));
	q->req.id.idiag_cookie[0] = INET_DIAG_NOCOOKIE;
	q->req.id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
}

static int
answer_read(const void *answer, size_t len, struct inet_diag_msg *ret)
{
	const struct nlmsghdr *head = answer;
	struct nlmsgerr e;

	if (!NLMSG_OK(head, len))
		return -1;
	if (head->nlmsg_type == NLMSG_ERROR && head->nlmsg_len >= NLMSG_LENGTH(sizeof(e))) {
		memcpy(&e, NLMSG_DATA(head), sizeof(e));
		return e.error == -ENOENT ? 0 : -1;
	}
	if (head->nlmsg_type != SOCK_DIAG_BY_FAMILY || head->nlmsg_len < NLMSG_LENGTH(sizeof(*ret)))
		return -1;
	memcpy(ret, NLMSG_DATA(head), sizeof(*ret));
	return 1;
}

/* Returns 1 with the socket that gets packets between these addresses, which may be a listener, 0
 * if there is none, -1 if the kernel does not answer. */
static int
look_up(int *sock, const struct hr_peer *p, struct inet_diag_msg *ret)
{
	_Alignas(struct nlmsghdr) char answer[ANSWER];
	struct question q;
	ssize_t n;
	int r = -1;

	if (*sock < 0)
		*sock = socket(
		    AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
	if (*sock < 0)
		return -1;
	question_fill(&q, p);
	/* The kernel's answer is ready when send() returns. */
	if (send(*sock, &q, sizeof(q), 0) == (ssize_t)sizeof(q) &&
	    (n = recv(*sock, answer, sizeof(answer), 0)) > 0)
		r = answer_read(answer, (size_t)n, ret);
	if (r < 0)
		hr_fd_close(sock); /* a later answer would be taken for that of another question */
	return r;
}

int
hr_peer_look(int *sock, struct hr_peer *p)
{
	struct inet_diag_msg m;
	uint64_t cookie;
	int r = look_up(sock, p, &m);

	if (r <= 0)
		return r;
	cookie = (uint64_t)m.id.idiag_cookie[1] << 32 | m.id.idiag_cookie[0];
	if (p->cookie != 0 && p->cookie != cookie)
		return 0;
	p->cookie = cookie;
	return m.idiag_state == TCP_ESTABLISHED;
}

int
hr_peer_listeners(hr_peer_listener_fn *fn, void *arg, struct hr_err *err)
{
	static const char *const files[] = {"/proc/net/tcp", "/proc/net/tcp6"};
	struct hr_err why = {0};
	char address[33], *line, *end;
	unsigned port;
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(*files); i++) {
		HR_BUF(text, TABLE_MAX);

		if (hr_path_read(files[i], &text, &why) < 0) {
			if (why.sys == ENOENT)
				continue; /* a kernel without such sockets */
			return hr_err_pass(err, &why);
		}
		/* sscanf() measures the rest of its string, so each line becomes one */
		for (line = text.p; line != NULL && (end = strchr(line, '\n')) != NULL;
		     line = end + 1) {
			*end = '\0';
			if (strstr(line, LISTENING) != NULL &&
			    sscanf(line, " %*u: %32[0-9A-F]:%4X", address, &port) == 2)
				fn(arg, address, port);
		}
	}
	return 0;
}

struct wanted {
	char address[33];
	unsigned port;
	bool found;
};

/* Takes a listener of the address itself, or of all of its family. */
static void
compare(void *arg, const char *address, unsigned port)
{
	struct wanted *w = arg;
	const size_t len = strlen(w->address);

	if (port == w->port && strlen(address) == len &&
	    (strcmp(address, w->address) == 0 || strspn(address, "0") == len))
		w->found = true;
}

/* Returns the same as hr_peer_listens(). */
static int
is_listed(const struct hr_peer *p)
{
	struct wanted w = {.port = ntohs(p->local_port)};
	const int words = p->family == AF_INET6 ? 4 : 1;
	int i;

	for (i = 0; i < words; i++)
		(void)snprintf(w.address + 8 * i, 9, "%08X", p->local[i]);
	return hr_peer_listeners(compare, &w, NULL) < 0 ? -1 : w.found;
}

int
hr_peer_listens(int *sock, const char *address, unsigned port)
{
	char text[2 * ADDRESS + 32];
	struct inet_diag_msg m;
	struct hr_peer p;
	int r;

	/* no connection has the remote port 0, so that the kernel finds a listener or nothing */
	(void)snprintf(text, sizeof(text), "%s 0 %s %u", address, address, port);
	if (!hr_peer_parse(text, &p))
		return 0;
	r = look_up(sock, &p, &m);
	return r < 0 ? is_listed(&p) : r > 0 && m.idiag_state == TCP_LISTEN;
}
