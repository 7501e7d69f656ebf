/* Which sandboxes the engine "local" has: by their records, and those that only their kind knows:
 * it was asked to make them, and nobody was left to write that down. */
#ifndef HR_FLEET_LOCAL_LOCALSTRAY_H
#define HR_FLEET_LOCAL_LOCALSTRAY_H

#include "fleet/engine.h"

/* dir: where they are recorded. */
int hr_local_list_recorded(const char *dir, hr_fleet_id_fn *fn, void *arg, struct hr_err *err);

/* For a kind that is HR_KIND_OF_STATE: without a record, and made with that directory. */
int hr_local_list_strays(const struct hr_fleet_options *o, const char *dir, hr_fleet_id_fn *fn,
    void *arg, struct hr_err *err);
/* None of that id is a success. */
int hr_local_end_stray(
    const struct hr_fleet_options *o, const char *dir, const char *id, struct hr_err *err);

#endif
