/* egress_inspect: the nginx of a broker, which ends HTTP for the hosts whose requests have rules.
 * It has no network: each of its ways leads back to the broker. It ends with the broker. */
#ifndef HR_EGRESS_INSPECT_H
#define HR_EGRESS_INSPECT_H

#include <stdbool.h>

#include "base/err.h"

struct egress_broker;
struct egress_inspect;

/* A connection that waits for nginx; zeroed but for fn and arg. */
struct egress_wait {
	/* Called with the socket that leads to nginx, which is the function's own, or with -1 and
	 * the reason. */
	void (*fn)(void *arg, int fd, const char *why);
	void *arg;
	struct egress_wait *next, **at; /* `at` is NULL while it does not wait */
};

struct egress_inspect *egress_inspect_new(struct egress_broker *b, struct hr_err *err);

/* Waits until nginx serves that host; never calls the function within this call. */
void egress_inspect(
    struct egress_inspect *i, struct egress_wait *w, const char *name, int port, bool tls);
void egress_inspect_cancel(struct egress_wait *w);

/* Applies the broker's policy and secrets to the hosts that are served. Returns 0, or -1 with *err
 * set and nothing changed. */
int egress_inspect_reload(struct egress_inspect *i, struct hr_err *err);

#endif
