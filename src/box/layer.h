/* box_layer: prepares the upper layers of a box's overlays, before they are mounted. Only the
 * launcher reaches them then, but an earlier box has written what they hold. */
#ifndef HR_BOX_LAYER_H
#define HR_BOX_LAYER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

/* Opens a directory below `at`, which is made if it is missing; never follows a link. Returns -1
 * with errno. */
int box_layer_directory(int at, const char *name, mode_t mode);

/* Makes each directory of a relative path below a directory of the storage, where nothing
 * is mounted yet, and gives the last one that mode: a link on the way, which the box has made, is
 * an error. */
int box_layer_below(int root, const char *path, mode_t mode, struct hr_err *err);

/* Makes a link at a relative path in the same way, unless there is something already. */
int box_layer_link(int root, const char *path, const char *target, struct hr_err *err);

/* Hides from `upper` what not every account may read in `lower`. What the box has made of such a
 * name itself stays. `all`: makes all directories in `upper`, so that root of an ordinary user's
 * box can add files to them. */
int box_layer_hide(int lower, int upper, bool all, struct hr_err *err);

/* Prepares the upper layer of the host's /etc: hides the files that programs make while they change
 * accounts, and gives the box its own version of those that must name it or that it must be able to
 * change (own_files). What an earlier box has changed or removed stays as it is. `scratch` is a
 * directory of the same file system, which no box reaches. */
int box_layer_etc(int etc, int upper, int scratch, const char *name, struct hr_err *err);

/* Prepares the upper layer of a root directory with a system of its own: its /etc/hosts names the
 * box. */
int box_layer_root(int root, int upper, int scratch, const char *name, struct hr_err *err);

/* Lets root of an ordinary user's box add files to /usr/bin, /usr/local and the like, whose
 * directories belong to the host's root. */
int box_layer_claim(int usr, int upper, struct hr_err *err);

#endif
