/* hr_peer: asks the kernel (sock_diag) whether the client of a TCP connection is still there, and
 * whether a program listens at a port. The sockets belong to other processes. */
#ifndef HR_BASE_PEER_H
#define HR_BASE_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

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
 * none yet. Waits for no other process. */
int hr_peer_look(int *sock, struct hr_peer *p);

/* Returns 1 if connections to this address and port reach a listener, which may be one of [::] or
 * of 0.0.0.0, 0 if they reach none, or -1 if the kernel does not answer. A kernel without
 * sock_diag, as gVisor's, has only its tables of all sockets, which hr_peer_listeners() reads: they
 * do not report whether a listener of [::] takes IPv4, so such a listener is found for IPv6 alone.
 * *sock is as above. The listening program notices nothing. Waits for no other process. */
int hr_peer_listens(int *sock, const char *address, unsigned port);

/* Receives the port of a listener, and its address as /proc/net/tcp has it: 8 or 32 digits. */
typedef void hr_peer_listener_fn(void *arg, const char *address, unsigned port);
/* Passes each TCP listener of this network namespace to fn. Returns 0, or -1 with *err set if a
 * table of sockets cannot be read, or has more than 16 MiB (some 100,000 sockets). */
int hr_peer_listeners(hr_peer_listener_fn *fn, void *arg, struct hr_err *err);

#endif
