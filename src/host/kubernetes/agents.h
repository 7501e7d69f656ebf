/* Objects "Sandbox" of kubernetes-sigs/agent-sandbox, whose controller creates and deletes the pod:
 * detection of the version that a cluster serves. */
#ifndef HR_HOST_KUBERNETES_AGENTS_H
#define HR_HOST_KUBERNETES_AGENTS_H

#include "host/kubernetes/kube.h"

#define HR_AGENTS_GROUP "agents.x-k8s.io"
#define HR_AGENTS_VERSION 16

/* Returns 1 with the newest known version that is served, and *ret_may (may be NULL): this account
 * may create them in the namespace; 0: none is served; -1 with *err set. */
int hr_agents_find(struct hr_kube *k, const char *ns, char version[HR_AGENTS_VERSION],
    bool *ret_may, struct hr_err *err);

#endif
