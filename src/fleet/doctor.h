/* hr_fleet_doctor: finds the things that the service lacks on this machine, and how to repair
 * that. */
#ifndef HR_FLEET_DOCTOR_H
#define HR_FLEET_DOCTOR_H

#include "fleet/edge.h"
#include "fleet/engine.h"
#include "fleet/fleet.h"

struct hr_fleet_exam {
	const struct hr_fleet_options *options; /* core.runtime is the back-end to check */
	const struct hr_fleet_backing *backing;
	const struct hr_fleet_edge *edge; /* run_dir does not exist yet */
	const struct hr_fleet_settings *set;
	const char *group; /* group that may connect to the socket; NULL: no other account */
	bool own_nginx;    /* the service starts nginx */
	hr_finding_fn *fn;
	void *arg;
	bool bad; /* there was a finding */
};

/* Checks everything, even after a finding. Changes only files that opening the store changes. */
void hr_fleet_doctor(struct hr_fleet_exam *x);

#endif
