/* hr_local_config: the settings of a sandbox for the engine "local". */
#ifndef HR_FLEET_LOCAL_LOCALCONFIG_H
#define HR_FLEET_LOCAL_LOCALCONFIG_H

#include "fleet/engine.h"

struct json_object;

/* The place of the engine's sandboxes on this machine. */
struct hr_local_place {
	const struct hr_fleet_options *o;
	char *dir; /* directory of the records */
	/* directory of the workspaces of back-ends that use this machine's files; NULL for
	 * others */
	char *work;
	char *sockets; /* directory of the servers' Unix sockets; NULL: they have addresses */
	bool only;     /* no server has an address */
};

/* Returns the service's settings with those of the request `q` of a row. The caller frees them.
 * NULL: *err is set. */
struct hr_config *hr_local_config(const struct hr_local_place *l, const struct hr_fleet_row *row,
    struct json_object *q, struct hr_err *err);

#endif
