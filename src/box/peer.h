/* box_peer: checks which account has the other end of a connection from this machine. */
#ifndef HR_BOX_PEER_H
#define HR_BOX_PEER_H

#include <stdbool.h>
#include <sys/types.h>

/* Returns a close-on-exec descriptor for questions about the network in which this process is now,
 * or -1 with errno. */
int box_peer_open(void);

/* Returns true if the client of an accepted IPv4 connection has that account, or is root. Returns
 * false for a client that has ended, and where the kernel does not report it. Does not block. */
bool box_peer_is(int questions, int client, uid_t uid);

#endif
