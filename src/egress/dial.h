/* egress_dial: connects to an allowed name or address, directly or by the operator's proxy.
 * Addresses of a name that the policy does not accept, such as private ones, are dropped; so are
 * those of this machine's interfaces that no entry names. */
#ifndef HR_EGRESS_DIAL_H
#define HR_EGRESS_DIAL_H

#include <netinet/in.h>
#include <stdbool.h>

#include "egress/policy.h"
#include "egress/resolve.h"

struct egress_dial;
struct json_object;

/* Called with the connected socket, which is the function's own, and the server's address; or with
 * -1 and the reason, and `refused` if the policy refused the addresses. The dial ends with the
 * call.
 */
typedef void egress_dialled_fn(
    void *arg, int fd, const union egress_address *server, const char *why, bool refused);

/* Starts to connect; the function is never called within this call. `name`, which outlives the
 * dial, is NULL for an address. `policy`, `resolver` and `secrets` are read when they are needed.
 * NULL: no memory. */
struct egress_dial *egress_dial(struct hr_loop *loop, struct egress_resolver *const *resolver,
    struct egress_policy *const *policy, struct json_object *const *secrets, const char *name,
    struct in_addr address, int port, egress_dialled_fn *fn, void *arg);
void egress_dial_cancel(struct egress_dial *d); /* Does nothing with NULL. */

#endif
