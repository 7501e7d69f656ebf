/* hr_forward: a port of a pod as a Unix socket of this process. Each connection to it is one of the
 * API server's port-forward. A thread of its own carries the bytes; it sleeps while there are none.
 *
 * While the API server cannot be reached a connection waits, up to a minute. What keeps it from
 * the pod is answered as HTTP, 503 with the reason. */
#ifndef HR_HOST_KUBERNETES_FORWARD_H
#define HR_HOST_KUBERNETES_FORWARD_H

#include "host/handrail.h"

struct hr_forward;

/* pod_path: "/api/v1/namespaces/NS/pods/NAME". early: the way of the first connection is opened
 * now, since it will come soon. NULL: *err. */
struct hr_forward *hr_forward_new(const struct hr_config *c, const char *const *env,
    const char *pod_path, int port, bool early, struct hr_err *err);
void hr_forward_free(struct hr_forward *f); /* NULL: nothing */

/* Its path: nobody else can reach it, and it is nowhere in the file system. */
const char *hr_forward_socket(const struct hr_forward *f);

#endif
