/* hr_local_rules: rules of a sandbox's network for the engine "local". */
#ifndef HR_FLEET_LOCAL_LOCALRULES_H
#define HR_FLEET_LOCAL_LOCALRULES_H

#include <stdbool.h>

#include "base/err.h"
#include "host/handrail.h"

struct hr_fleet_options;
struct hr_fleet_row;

/* Puts the rules of the row in force, unless they are already. Returns 0, or -1 with *err set. */
int hr_local_set_rules(struct hr_sandbox *s, const struct hr_fleet_row *row, struct hr_err *err);
/* Returns true if a client may choose the rules of a container's network: rules take the place of
 * the operator's own settings for networks, and do not hold beside them. */
bool hr_local_may_have_rules(const struct hr_config *c);
/* Returns false, after it has logged the reason, if the back-end can never hold rules. An Engine
 * that does not answer is no reason: it is asked again before each sandbox with rules. */
bool hr_local_rules_hold(const struct hr_fleet_options *o);

#endif
