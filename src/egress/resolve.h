/* egress_resolve: asks the machine's name servers, or those of the policy, for the addresses of a
 * name, over c-ares. */
#ifndef HR_EGRESS_RESOLVE_H
#define HR_EGRESS_RESOLVE_H

#include <stddef.h>
#include <sys/socket.h>

#include "egress/policy.h"

struct egress_resolver;
struct egress_query;
struct hr_loop;

#define EGRESS_RESULTS_MAX 8

/* Called with the addresses, those of IPv4 first, each with the port; or with n 0 and the reason.
 * The query ends with the call. */
typedef void
egress_resolved_fn(void *arg, const union egress_address *v, size_t n, const char *why);

/* Returns a resolver that asks `servers`, "ADDRESS[:PORT]", NULL-terminated; NULL: the machine's
 * servers and its file of hosts. */
struct egress_resolver *
egress_resolver_new(struct hr_loop *loop, const char *const *servers, struct hr_err *err);
/* Ends every query with an error; does nothing with NULL. */
void egress_resolver_free(struct egress_resolver *r);

/* Starts a query, which may end within the call: *ret is then NULL. Not called with n 0 and
 * without memory. */
void egress_resolve(struct egress_resolver *r, const char *name, int port, egress_resolved_fn *fn,
    void *arg, struct egress_query **ret);
/* Forgets a query: the function is not called. Does nothing with NULL. */
void egress_query_cancel(struct egress_query *q);

#endif
