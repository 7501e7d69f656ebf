/* Keeps the settings of a box for its branches. */
#ifndef HR_HOST_BOX_BRANCH_H
#define HR_HOST_BOX_BRANCH_H

#include "host/box/box_int.h"

/* Reads the settings that hr_box_keep_settings() has written. The caller owns *ret. */
int hr_box_settings(const struct hr_box *b, struct json_object **ret, struct hr_err *err);
/* Returns c with these settings, and with the rules of a network as they are now (NULL: there are
 * none). The caller owns it; NULL: *err is set. */
struct hr_config *hr_box_branch_config(
    const struct hr_config *c, struct json_object *kept, const char *rules, struct hr_err *err);

#endif
