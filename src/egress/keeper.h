/* egress_keeper: the parent process of the broker. It reads no foreign bytes. It holds the
 * listeners in the box's network, so that a killed broker costs its open tunnels only. */
#ifndef HR_EGRESS_KEEPER_H
#define HR_EGRESS_KEEPER_H

#include "base/err.h"
#include "egress/held.h"

struct egress_policy;

/* Makes the listeners that the policy needs, in the box's network, and the control socket, in the
 * current directory. A broker that has lost its keeper hands its listeners over, and ends with its
 * last tunnel. */
int egress_keeper_open(struct egress_held *h, const struct egress_policy *p, struct hr_err *err);
/* Takes the descriptors of the image that was replaced. */
int egress_keeper_inherit(struct egress_held *h, struct hr_err *err);
/* Runs until the box or a signal ends the process, which must lead a session of its own; returns
 * only with an error. `dir` is the current directory. */
int egress_keeper_run(struct egress_held *h, const char *dir, struct hr_err *err);

/* first argument of an image that replaces another one */
#define EGRESS_UPGRADED "--upgraded"

#endif
