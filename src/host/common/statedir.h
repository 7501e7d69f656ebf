/* The directory in which the state of sandboxes is kept. */
#ifndef HR_HOST_COMMON_STATEDIR_H
#define HR_HOST_COMMON_STATEDIR_H

#include <stdbool.h>

#include "base/err.h"

/* What lies there is believed, so that only the user may write in it. make: there may be none yet;
 * otherwise that is no error. */
int hr_state_directory(const char *dir, bool make, struct hr_err *err);

#endif
