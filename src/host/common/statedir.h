/* Manages the directory of the sandboxes' state. */
#ifndef HR_HOST_COMMON_STATEDIR_H
#define HR_HOST_COMMON_STATEDIR_H

#include <stdbool.h>

#include "base/err.h"

/* Checks that only the user can write in the directory, as its files are trusted. With `make` it
 * creates a missing one; otherwise a missing one is no error. */
int hr_state_directory(const char *dir, bool make, struct hr_err *err);

#endif
