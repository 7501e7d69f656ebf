/* hr_crew: several processes do numbered tasks at once. The library forks, which other threads do
 * not allow: their locks stay locked in the child. */
#ifndef HR_HOST_BOX_CREW_H
#define HR_HOST_BOX_CREW_H

#include <stddef.h>

#include "base/err.h"

/* Performs task number i, in this process or in a child with a copy of its memory. Returns 0, or -1
 * with *err set. */
typedef int hr_crew_task(void *arg, size_t i, struct hr_err *err);

/* Runs the function for each number from `first` to n - 1, in no order, and returns when all
 * processes have ended; they also end if this one is killed. After the first failure no further
 * task begins. Returns 0, or -1 with the first failure in *err. */
int hr_crew_run(size_t first, size_t n, hr_crew_task *fn, void *arg, struct hr_err *err);

#endif
