/* Copies the files of boxes for the engine "local": forks and snapshots. */
#ifndef HR_FLEET_LOCAL_LOCALCOPIES_H
#define HR_FLEET_LOCAL_LOCALCOPIES_H

#include "fleet/engine.h"

struct hr_local_copies {
	const struct hr_fleet_options *o;
	const char *dir; /* directory of the records */
	const char *const *environ;
};

/* Implements copies() of struct hr_fleet_engine. */
int hr_local_copies(const struct hr_local_copies *l, const char *what, const char *id,
    const char *args, char **ret_json, struct hr_err *err);

#endif
