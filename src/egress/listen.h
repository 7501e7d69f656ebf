/* egress_listen: makes listeners in the network of a box. */
#ifndef HR_EGRESS_LISTEN_H
#define HR_EGRESS_LISTEN_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* ports with a protocol of their own; those of the proxies have it at the loopback addresses */
#define EGRESS_PORT_DNS 53
#define EGRESS_PORT_SOCKS 1080
#define EGRESS_PORT_PROXY 3128

struct egress_place {
	int port;
	bool udp;
};

/* Makes non-blocking listeners in the network of the box's process, all or none. Returns 0, or -1
 * with *err set. */
int egress_listen(int box, const struct egress_place *v, size_t n, int *ret, struct hr_err *err);

/* Returns the local address of a listener or of a connection; zeroed: none of IPv4. */
struct sockaddr_in egress_local(int fd);
/* Returns true if a listener is for connections, not for datagrams. */
bool egress_is_tcp(int fd);

#endif
