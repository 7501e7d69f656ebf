#include "config.h"

#include "base/loopback.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/fd.h"

int
hr_loopback_raise(struct hr_err *err)
{
	HR_CLOSE int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};

	return fd >= 0 && ioctl(fd, SIOCSIFFLAGS, &r) == 0
		   ? 0
		   : hr_err_sys(err, errno, "start the loopback interface");
}

int
hr_loopback_take_all(struct hr_err *err)
{
	struct {
		struct nlmsghdr head;
		struct rtmsg route;
		struct rtattr attr;
		unsigned index;
	} ask = {.head = {.nlmsg_len = sizeof(ask),
		     .nlmsg_type = RTM_NEWROUTE,
		     .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE},
	    .route = {.rtm_family = AF_INET,
		.rtm_table = RT_TABLE_LOCAL,
		.rtm_protocol = RTPROT_BOOT,
		.rtm_scope = RT_SCOPE_HOST,
		.rtm_type = RTN_LOCAL},
	    .attr = {.rta_len = RTA_LENGTH(sizeof(unsigned)), .rta_type = RTA_OIF},
	    .index = if_nametoindex("lo")};
	struct {
		struct nlmsghdr head;
		struct nlmsgerr result;
		char rest[1024];
	} answer;
	HR_CLOSE int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n = -1;

	if (fd >= 0 && ask.index > 0 && send(fd, &ask, sizeof(ask), 0) == (ssize_t)sizeof(ask))
		n = hr_fd_read(fd, &answer, sizeof(answer));
	if (n >= (ssize_t)(sizeof(answer.head) + sizeof(answer.result)) &&
	    answer.head.nlmsg_type == NLMSG_ERROR) {
		if (answer.result.error == 0)
			return 0;
		errno = -answer.result.error;
	}
	return hr_err_sys(err, errno, "route all addresses to the loopback interface");
}
