/* hr_portlock: ports that several processes of this machine hand out to their sandboxes, each to
 * one (doc/host.md, "Ports"). */
#ifndef HR_HOST_RECORDS_PORTLOCK_H
#define HR_HOST_RECORDS_PORTLOCK_H

#include "host/handrail.h"

struct hr_portlock {
	int fd;  /* -1: not held */
	int dir; /* where it is; -1: not held */
	int port;
	char name[32];
};

#define HR_PORTLOCK_NONE                                                                           \
	{                                                                                          \
		.fd = -1, .dir = -1                                                                \
	}

enum hr_port_use { HR_PORT_SERVER, HR_PORT_VSCODE, HR_PORT_APP1, HR_PORT_APP2 };

/* The range of a use on this machine. */
void hr_port_range(enum hr_port_use use, int *ret_min, int *ret_max);

/* dir: NULL for the shared one below the temporary directory, which is made, for all accounts, if
 * it is missing; a link in its place is refused. Never waits: a port that another has is no port
 * for us. 0: held; HR_E_UNAVAILABLE if another has it. */
int hr_portlock_acquire(struct hr_portlock *l, const char *dir, int port, struct hr_err *err);
void hr_portlock_release(struct hr_portlock *l); /* twice is fine */

/* A locked port on which a server could listen: some at random, then in sequence. The lock is for
 * those who lock, and the kernel gives such ports to anybody's connections: it does not while the
 * caller has *ret_bound open, which is bound with SO_REUSEADDR, as the server is to do it, and does
 * not listen. ret_bound may be NULL. */
int hr_portlock_find(struct hr_portlock *l, const char *dir, int min, int max, int attempts,
    const char *address, int *ret_bound, struct hr_err *err);

/* Are there free ports at that address? For a kind's doctor. */
void hr_portlock_examine(const char *address, hr_finding_fn *fn, void *arg);

#endif
