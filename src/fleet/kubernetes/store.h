/* hr_kube_store: keeps the fleet's store in the API server. Several processes may serve it without
 * a leader: each change names the version that was read. */
#ifndef HR_FLEET_KUBERNETES_STORE_H
#define HR_FLEET_KUBERNETES_STORE_H

#include "fleet/engine.h"

struct hr_store *hr_kube_store_open(const struct hr_fleet_options *o, struct hr_err *err);

#endif
