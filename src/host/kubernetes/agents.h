/* Objects "Sandbox" of kubernetes-sigs/agent-sandbox, whose controller makes and ends the pod: what
 * of them a cluster serves. */
#ifndef HR_HOST_KUBERNETES_AGENTS_H
#define HR_HOST_KUBERNETES_AGENTS_H

#include "host/kubernetes/kube.h"

#define HR_AGENTS_GROUP "agents.x-k8s.io"
#define HR_AGENTS_VERSION 16

/* 1: version is the newest known one that is served, *ret_may (may be NULL): this account may make
 * them in the namespace; 0: none is; -1 *err. */
int hr_agents_find(struct hr_kube *k, const char *ns, char version[HR_AGENTS_VERSION],
    bool *ret_may, struct hr_err *err);

#endif
