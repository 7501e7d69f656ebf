/* Checks a cluster for "handrail doctor", and reports its events for "handrail events". */
#ifndef HR_HOST_KUBERNETES_LOOK_H
#define HR_HOST_KUBERNETES_LOOK_H

#include "host/kubernetes/kubernetes_int.h"

/* Reports on server, rights, storage, quota and image, even after a fault. */
int hr_kubernetes_look(struct hr_kubernetes *d, hr_finding_fn *fn, void *arg, struct hr_err *err);

/* Reports events of all of handrail's pods, by one watch, until stop_fd or fn ends it. */
int hr_kubernetes_tell(struct hr_kubernetes *d, hr_event_fn *fn, void *arg, struct hr_err *err);

#endif
