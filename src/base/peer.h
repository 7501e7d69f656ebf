/* hr_peer: asks the kernel (sock_diag) whether the client of a TCP connection is still there. The
 * connection belongs to another process, nginx. */
#ifndef HR_BASE_PEER_H
#define HR_BASE_PEER_H

#include <stdbool.h>
#include <stdint.h>

struct hr_peer {
	uint32_t remote[4], local[4]; /* addresses in network order */
	uint16_t remote_port, local_port;
	uint8_t family;  /* AF_INET or AF_INET6 */
	uint64_t cookie; /* distinguishes the connection from a later one with the same addresses;
			    0: not known yet */
};

/* Parses "REMOTE-ADDRESS PORT LOCAL-ADDRESS PORT" into *ret. Returns false if `text` has another
 * form, as for a Unix socket. */
bool hr_peer_parse(const char *text, struct hr_peer *ret);

/* Returns 1 if neither end has closed the connection, 0 if one has or the connection is gone, -1 if
 * the kernel does not answer. The first call fills p->cookie. *sock is kept for the next call; -1:
 * none yet. Does not block. */
int hr_peer_look(int *sock, struct hr_peer *p);

#endif
