/* hr_fleet_doctor: what the service lacks on this machine, and what mends it. */
#ifndef HR_FLEET_DOCTOR_H
#define HR_FLEET_DOCTOR_H

#include "fleet/edge.h"
#include "fleet/engine.h"
#include "fleet/fleet.h"

struct hr_fleet_exam {
	const struct hr_fleet_options *options; /* core.runtime: the kind to look at */
	const struct hr_fleet_backing *backing;
	const struct hr_fleet_edge *edge; /* its run_dir is not made yet */
	const struct hr_fleet_settings *set;
	const char *group; /* may connect to the socket; NULL: nobody else */
	bool own_nginx;    /* the service starts it */
	hr_finding_fn *fn;
	void *arg;
	bool bad; /* something was found */
};

/* Looks at everything, whatever is missing. Nothing is made or changed but what opening the store
 * does. */
void hr_fleet_doctor(struct hr_fleet_exam *x);

#endif
