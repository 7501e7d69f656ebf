/* hr_kubernetes_rules: writes the rules of a sandbox's network as a NetworkPolicy. */
#ifndef HR_HOST_KUBERNETES_RULES_H
#define HR_HOST_KUBERNETES_RULES_H

#include <stdbool.h>

#include "base/buf.h"
#include "host/handrail-backend.h"

/* Returns true if the settings ask for a network with rules. */
bool hr_kubernetes_has_rules(const struct hr_config *c);
/* Refuses rules that a NetworkPolicy cannot express, before anything is made. */
int hr_kubernetes_check_rules(const struct hr_backend_host *h, struct hr_err *err);
/* Appends the members of the policy's list "egress"; the rules were checked. */
void hr_kubernetes_put_rules(const struct hr_config *c, struct hr_buf *b);

#endif
