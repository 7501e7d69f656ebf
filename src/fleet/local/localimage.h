/* Handles images of the engine "local": a Docker Engine's. Other back-ends have none. */
#ifndef HR_FLEET_LOCAL_LOCALIMAGE_H
#define HR_FLEET_LOCAL_LOCALIMAGE_H

#include "fleet/engine.h"

/* Implements image() and build() of struct hr_fleet_engine. */
int hr_local_image(
    const struct hr_fleet_options *o, const char *name, char **ret_json, struct hr_err *err);
int hr_local_build(const struct hr_fleet_options *o, const char *id, struct hr_err *err);

#endif
