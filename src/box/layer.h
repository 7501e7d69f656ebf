/* box_layer: prepares the upper layers of a box's overlays, before they are mounted. Only the
 * launcher reaches them then, but an earlier box has written what they hold. */
#ifndef HR_BOX_LAYER_H
#define HR_BOX_LAYER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"
#include "box/spec.h"

/* Opens a directory below `at`, which is made if it is missing; never follows a link. Returns -1
 * with errno. */
int box_layer_directory(int at, const char *name, mode_t mode);

/* Makes each directory of a relative path below a directory of the storage, where nothing
 * is mounted yet, and gives the last one that mode: a link on the way, which the box has made, is
 * an error. */
int box_layer_below(int root, const char *path, mode_t mode, struct hr_err *err);

/* Makes a link at a relative path in the same way, unless there is something already. */
int box_layer_link(int root, const char *path, const char *target, struct hr_err *err);

/* Fills the upper layer of the overlay of `lower` at `target` in the box, before it is mounted:
 * - /etc: hides the files that programs make while they change accounts, and gives the box its own
 *   version of those that must name it or that it must be able to change (own_files);
 * - `sifted`: hides what not every account may read in `lower`;
 * - `plain`, for an ordinary user's box: lets its root add files to the directories of the host's
 *   root that need it, and makes the directories of the document's mounts.
 * What an earlier box has changed or removed stays as it is. `scratch` is a directory of the same
 * file system, which no box reaches. Returns 0, or -1 with *err. */
int box_layer_prepare(const struct box_spec *s, bool plain, const char *target, bool sifted,
    int lower, int upper, int scratch, struct hr_err *err);

#endif
