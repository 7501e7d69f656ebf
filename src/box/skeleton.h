/* box_skeleton: makes the directories and links of a box that are not the host's. */
#ifndef HR_BOX_SKELETON_H
#define HR_BOX_SKELETON_H

#include "base/err.h"

/* Makes the directories that every box has in `root`, a directory of the storage, and the links of
 * a box with the host's programs. Returns 0, or -1 with *err. */
int box_skeleton_root(int root, struct hr_err *err);
/* Makes what the start of a system makes in /run, and the links in /dev. Returns 0, or -1 with
 * *err. */
int box_skeleton_system(struct hr_err *err);

#endif
