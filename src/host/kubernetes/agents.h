/* Detects the version of the objects "Sandbox" of kubernetes-sigs/agent-sandbox that a cluster
 * serves; their controller creates and deletes the pod. */
#ifndef HR_HOST_KUBERNETES_AGENTS_H
#define HR_HOST_KUBERNETES_AGENTS_H

#include "host/kubernetes/kube.h"

#define HR_AGENTS_GROUP "agents.x-k8s.io"
#define HR_AGENTS_VERSION 16

/* Returns 1 with the newest known version that is served, and *ret_may (may be NULL) set if this
 * account may create them in the namespace; 0 if none is served; -1 with *err set. */
int hr_agents_find(struct hr_kube *k, const char *ns, char version[HR_AGENTS_VERSION],
    bool *ret_may, struct hr_err *err);

#endif
