/* hr_peer: whether the client of a TCP connection is still there, by the kernel's table
 * (sock_diag). The connection is another process', nginx'. */
#ifndef HR_BASE_PEER_H
#define HR_BASE_PEER_H

#include <stdbool.h>
#include <stdint.h>

struct hr_peer {
	uint32_t remote[4], local[4]; /* addresses, in network order */
	uint16_t remote_port, local_port;
	uint8_t family;  /* AF_INET, AF_INET6 */
	uint64_t cookie; /* tells it from a later one of the same addresses; 0: not looked at yet */
};

/* Fills *ret from "REMOTE-ADDRESS PORT LOCAL-ADDRESS PORT". Returns false if text is no such thing,
 * as for a Unix socket. */
bool hr_peer_parse(const char *text, struct hr_peer *ret);

/* Returns 1 if neither end of the connection has closed it, 0 if one has or the connection is gone,
 * -1 if the kernel does not tell. The first look fills p->cookie. *sock is kept for the next look;
 * -1: none yet. Does not block. */
int hr_peer_look(int *sock, struct hr_peer *p);

#endif
