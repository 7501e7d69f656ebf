/* hr_forward: forwards a port of a pod to a Unix socket of this process. Each connection becomes
 * one port-forward of the API server. A thread carries the bytes, and sleeps while there are none.
 * While the API server is not reachable, a connection waits, up to a minute. If the pod is not
 * reachable, the answer is HTTP 503 with the reason. */
#ifndef HR_HOST_KUBERNETES_FORWARD_H
#define HR_HOST_KUBERNETES_FORWARD_H

#include "host/handrail.h"

struct hr_forward;

/* Opens a forward; pod_path is "/api/v1/namespaces/NS/pods/NAME". `early` opens the first
 * connection to the pod in advance. Returns NULL with *err set. */
struct hr_forward *hr_forward_new(const struct hr_config *c, const char *const *env,
    const char *pod_path, int port, bool early, struct hr_err *err);
/* Closes the forward *io, which may be NULL, and sets it to NULL. */
void hr_forward_drop(struct hr_forward **io);

/* Returns the socket's path: only this process can reach it, as it is nowhere in the file
 * system. */
const char *hr_forward_socket(const struct hr_forward *f);

#endif
