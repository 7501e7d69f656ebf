/* What "handrail doctor" and "handrail events" ask a cluster. */
#ifndef HR_HOST_KUBERNETES_LOOK_H
#define HR_HOST_KUBERNETES_LOOK_H

#include "host/kubernetes/kubernetes_int.h"

/* Server, rights, storage, quota, image: each is told, whatever is missing. */
int hr_kubernetes_look(struct hr_kubernetes *d, hr_finding_fn *fn, void *arg, struct hr_err *err);

/* What happens to all of our pods, by one watch, until stop_fd or fn ends it. */
int hr_kubernetes_tell(struct hr_kubernetes *d, hr_event_fn *fn, void *arg, struct hr_err *err);

#endif
