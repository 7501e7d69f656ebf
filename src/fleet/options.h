/* hr_fleetd_options: the words of handrail-fleetd, as handrail-fleetd(8) has them. */
#ifndef HR_FLEET_OPTIONS_H
#define HR_FLEET_OPTIONS_H

#include "fleet/api/api.h"
#include "fleet/edge.h"
#include "fleet/engine.h"
#include "fleet/fleet.h"

#define HR_FLEETD_STATE "/var/lib/handrail-fleet" /* where it is kept otherwise */

struct hr_fleetd_options {
	const char *kind, *group, *print, *level, *engine;
	bool init, doctor, check, no_nginx, builds;
	int64_t upload_s;
	struct hr_fleet_settings set;
	struct hr_fleet_edge edge;
	struct hr_fleet_api api;
	struct hr_fleet_options of_engine;
	const struct hr_fleet_backing *backing;
	struct hr_config *config;
	const char *call; /* of a process that the engine started */
};

/* -1: go on; otherwise the exit status, and what is to be said is said. */
int hr_fleetd_parse(struct hr_fleetd_options *o, int argc, char **argv);
/* Options that do not go together; NULL: they do. */
const char *hr_fleetd_misfit(const struct hr_fleetd_options *o);

#endif
