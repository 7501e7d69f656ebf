/* hr_fleet_doctor: finds what the service lacks on this machine, and how to repair it. */
#ifndef HR_FLEET_DOCTOR_H
#define HR_FLEET_DOCTOR_H

#include "fleet/edge.h"
#include "fleet/engine.h"
#include "fleet/fleet.h"

struct hr_fleet_exam {
	const struct hr_fleet_options *options; /* core.runtime: the back-end to check */
	const struct hr_fleet_backing *backing;
	const struct hr_fleet_edge *edge; /* run_dir does not exist yet */
	const struct hr_fleet_settings *set;
	const char *group; /* may connect to the socket; NULL: nobody else */
	bool own_nginx;    /* the service starts it */
	hr_finding_fn *fn;
	void *arg;
	bool bad; /* something was found */
};

/* Checks everything, even after a finding. Changes nothing but what opening the store changes. */
void hr_fleet_doctor(struct hr_fleet_exam *x);

#endif
