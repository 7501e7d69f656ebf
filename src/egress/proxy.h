/* egress_talk: asks the operator's proxy, HTTP or SOCKS5, to connect to an address. */
#ifndef HR_EGRESS_PROXY_H
#define HR_EGRESS_PROXY_H

#include "egress/policy.h"

struct egress_talk;

/* Copies what it needs of the proxy and its password (NULL: none). NULL: no memory. */
struct egress_talk *egress_talk_new(const struct egress_proxy *p, const char *password);
void egress_talk_free(struct egress_talk *t); /* Does nothing with NULL. */

/* Starts to talk over a connected socket. Returns 0, or -1 with the reason. */
int
egress_talk_start(struct egress_talk *t, int fd, const struct sockaddr *to, const char **ret_why);
/* Reads on when the socket is readable, and no byte of the server. Returns 1 if the socket now
 * leads to the address, 0, or -1 with the reason, which the talk owns. */
int egress_talk(struct egress_talk *t, int fd, const char **ret_why);

#endif
