/* box_mask: what a box does not see of its own /proc and /sys. */
#ifndef HR_BOX_MASK_H
#define HR_BOX_MASK_H

#include "base/err.h"

/* Hides files and directories of /proc and /sys below empty ones, protects others from writes, and
 * gives the box a boot ID of its own.
 * The caller's root is the box's. Returns 0, or -1 with *err. */
int box_mask(struct hr_err *err);

#endif
