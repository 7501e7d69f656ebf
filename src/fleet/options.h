/* hr_fleetd_options: holds the options of handrail-fleetd, as in handrail-fleetd(8). */
#ifndef HR_FLEET_OPTIONS_H
#define HR_FLEET_OPTIONS_H

#include "fleet/api/api.h"
#include "fleet/edge.h"
#include "fleet/engine.h"
#include "fleet/fleet.h"

#define HR_FLEETD_STATE "/var/lib/handrail-fleet" /* default of the state directory */

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
	struct hr_strv templates;
	const char *call; /* set in a process that the engine started */
};

/* Returns -1 to continue; otherwise the exit status, after it has printed the help or the error. */
int hr_fleetd_parse(struct hr_fleetd_options *o, int argc, char **argv);
/* Returns the error text if options contradict each other, else NULL. */
const char *hr_fleetd_misfit(const struct hr_fleetd_options *o);

#endif
