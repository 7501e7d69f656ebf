/* egress_broker: the process that takes what a box sends, decides by the policy, and carries the
 * bytes of what may pass. All sockets of the box lead to it. */
#ifndef HR_EGRESS_BROKER_H
#define HR_EGRESS_BROKER_H

#include <stddef.h>

#include "base/err.h"
#include "egress/held.h"

struct egress_policy;

/* Runs a broker in the current directory, DIR, until the box ends or the process has retired and
 * its last tunnel has ended. */
int egress_broker_run(struct egress_held *h, struct hr_err *err);

/* Reads policy.json of the current directory; NULL with *err set. */
struct egress_policy *egress_broker_policy(struct hr_err *err);

#endif
