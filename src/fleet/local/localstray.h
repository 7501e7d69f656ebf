/* Lists the sandboxes of the engine "local": recorded ones, and strays: sandboxes that the back-end
 * made, but that no record names, because the process was killed in between. */
#ifndef HR_FLEET_LOCAL_LOCALSTRAY_H
#define HR_FLEET_LOCAL_LOCALSTRAY_H

#include "fleet/engine.h"

/* Lists the sandboxes that are recorded in dir. */
int hr_local_list_recorded(const char *dir, hr_fleet_id_fn *fn, void *arg, struct hr_err *err);

/* Lists sandboxes without a record that were made with that directory; for a back-end with
 * HR_KIND_OF_STATE. */
int hr_local_list_strays(const struct hr_fleet_options *o, const char *dir, hr_fleet_id_fn *fn,
    void *arg, struct hr_err *err);
/* Removes the stray with that id; succeeds if there is none. */
int hr_local_end_stray(
    const struct hr_fleet_options *o, const char *dir, const char *id, struct hr_err *err);

#endif
