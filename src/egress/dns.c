/* Answers the questions of the box for names. No question leaves the machine, so that none carries
 * data out; a name is resolved only when an allowed connection needs it. */
#include "config.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "egress/broker_int.h"

#define BATCH 64 /* questions of one iteration, so that connections are served in between */

size_t
egress_dns_reply(struct egress_broker *b, const void *p, size_t len, uint8_t ret[EGRESS_DNS_MAX])
{
	uint8_t data[EGRESS_DNS_NAME];
	char name[EGRESS_NAME_MAX + 1];
	struct egress_question q;
	int code = EGRESS_DNS_REFUSED;
	struct in_addr a;
	size_t n = 0;

	if (!egress_dns_read(p, len, &q))
		return 0;
	switch (q.name[0] != '\0' ? q.type : 0) {
	case EGRESS_DNS_A:
		if (egress_names_address(b->names, q.name, &a) == 0)
			return egress_dns_answer(p, &q, EGRESS_DNS_OK, &a, sizeof(a), ret);
		egress_log_add(
		    b->log, &(const struct egress_event){.kind = "dns",
				.rule = "the sandbox has asked for more names than are kept"});
		code = EGRESS_DNS_SERVFAIL;
		break;
	case EGRESS_DNS_PTR:
		if (!egress_dns_reverse(q.name, &a))
			break;
		n = egress_names_find(b->names, a, name) ? egress_dns_name(name, data) : 0;
		code = n > 0 ? EGRESS_DNS_OK : EGRESS_DNS_NXDOMAIN;
		break;
	case EGRESS_DNS_AAAA:
	case EGRESS_DNS_HTTPS:
	case EGRESS_DNS_SVCB: code = EGRESS_DNS_OK; break;
	}
	return egress_dns_answer(p, &q, code, data, n, ret);
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
