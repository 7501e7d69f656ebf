/* Answers the questions of the box for names. No question leaves the machine, so that none carries
 * data out; a name is resolved only when an allowed connection needs it. */
#include "config.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "egress/broker_int.h"

#define TTL_S 5
#define BATCH 64 /* questions of one iteration, so that connections are served in between */

size_t
egress_dns_reply(struct egress_broker *b, const void *p, size_t len, uint8_t ret[EGRESS_DNS_MAX])
{
	struct egress_question q;
	struct in_addr a;

	if (!egress_dns_read(p, len, &q))
		return 0;
	if (q.name[0] == '\0')
		return egress_dns_answer(p, &q, EGRESS_DNS_REFUSED, NULL, 0, ret);
	if (q.type == EGRESS_DNS_AAAA || q.type == EGRESS_DNS_HTTPS || q.type == EGRESS_DNS_SVCB)
		return egress_dns_answer(p, &q, EGRESS_DNS_OK, NULL, 0, ret);
	if (q.type != EGRESS_DNS_A)
		return egress_dns_answer(p, &q, EGRESS_DNS_REFUSED, NULL, 0, ret);
	if (egress_names_address(b->names, q.name, &a) == 0)
		return egress_dns_answer(p, &q, EGRESS_DNS_OK, &a, TTL_S, ret);
	egress_log_add(b->log, &(const struct egress_event){.kind = "dns",
				   .rule = "the box has asked for more names than are kept"});
	return egress_dns_answer(p, &q, EGRESS_DNS_SERVFAIL, NULL, 0, ret);
}

/* Answers one datagram, from the address that was asked. Returns false if there is none. */
static bool
answer_one(struct egress_broker *b, int fd)
{
	uint8_t question[EGRESS_DNS_MAX], answer[EGRESS_DNS_MAX];
	char control[CMSG_SPACE(sizeof(struct in_pktinfo))];
	struct sockaddr_in from;
	struct iovec v = {question, sizeof(question)};
	struct msghdr m = {.msg_name = &from,
	    .msg_namelen = sizeof(from),
	    .msg_iov = &v,
	    .msg_iovlen = 1,
	    .msg_control = control,
	    .msg_controllen = sizeof(control)};
	ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT);
	struct in_pktinfo info;
	struct cmsghdr *c;

	if (n < 0)
		return false;
	c = CMSG_FIRSTHDR(&m);
	if ((m.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || c == NULL ||
	    c->cmsg_level != IPPROTO_IP || c->cmsg_type != IP_PKTINFO)
		return true;
	v = (struct iovec){answer, egress_dns_reply(b, question, (size_t)n, answer)};
	if (v.iov_len == 0)
		return true;
	memcpy(&info, CMSG_DATA(c), sizeof(info));
	info.ipi_spec_dst = info.ipi_addr;
	info.ipi_ifindex = 0;
	memcpy(CMSG_DATA(c), &info, sizeof(info));
	/* a client that does not take its answer asks again */
	(void)sendmsg(fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
	return true;
}

void
egress_dns_datagrams(struct egress_broker *b, int fd)
{
	unsigned i;

	for (i = 0; i < BATCH && answer_one(b, fd); i++)
		;
}
