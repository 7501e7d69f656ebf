/* hr_portlock: keeps processes of this machine from giving one port to two sandboxes (doc/host.md,
 * "Ports"). */
#ifndef HR_HOST_RECORDS_PORTLOCK_H
#define HR_HOST_RECORDS_PORTLOCK_H

#include "host/handrail.h"

struct hr_portlock {
	int fd;  /* -1: the port is not locked */
	int dir; /* directory of the lock file; -1: the port is not locked */
	int port;
	char name[32];
};

#define HR_PORTLOCK_NONE                                                                           \
	{                                                                                          \
		.fd = -1, .dir = -1                                                                \
	}

enum hr_port_use { HR_PORT_SERVER, HR_PORT_VSCODE, HR_PORT_APP1, HR_PORT_APP2 };

/* Returns the range of ports for a use on this machine. */
void hr_port_range(enum hr_port_use use, int *ret_min, int *ret_max);

/* Locks a port, without waiting. dir NULL: the shared directory below the temporary one, which is
 * created for all accounts if it is missing; a link in its place is refused. Returns 0, or -1 with
 * HR_E_UNAVAILABLE if another process has the port. */
int hr_portlock_acquire(struct hr_portlock *l, const char *dir, int port, struct hr_err *err);
void hr_portlock_release(struct hr_portlock *l); /* Releases the lock, if it is held. */

/* Finds a port on which a server can listen, and locks it: tries some at random, which
 * the kernel gives to no outgoing connection as long as it has others, then any in sequence. The
 * lock binds only its users: another process can still take the port, except while the caller keeps
 * *ret_bound open: a socket bound with SO_REUSEADDR that does not listen; the server must bind with
 * SO_REUSEADDR, too. ret_bound may be NULL. */
int hr_portlock_find(struct hr_portlock *l, const char *dir, int min, int max, int attempts,
    const char *address, int *ret_bound, struct hr_err *err);

/* Reports to `fn` whether there are free ports at `address`; for a back-end's doctor. */
void hr_portlock_examine(const char *address, hr_finding_fn *fn, void *arg);

#endif
