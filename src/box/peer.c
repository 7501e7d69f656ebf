/* Asks the kernel's table of sockets for the client's own end of a connection. */
#include "config.h"

#include "box/peer.h"

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>

int
box_peer_open(void)
{
	return socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
}

bool
box_peer_is(int questions, int client, uid_t uid)
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
