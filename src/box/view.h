/* box_view: makes the file systems of a box. The mounts are made before the old root is left,
 * without a place, and put at their places when the new root is the only one: no link in the box
 * leads a mount or a directory of this program to a file of the host. */
#ifndef HR_BOX_VIEW_H
#define HR_BOX_VIEW_H

#include <stddef.h>

#include "box/spec.h"

/* Returns directory i of the host that a box sees with overlays, below /; NULL: there are no
 * more. */
const char *box_view_seen(size_t i);

/* Prepares the part of the storage that takes long: the host's files that root's box does not see.
 * The guard does it while the first process is made. `plain`: the box has a user namespace, and the
 * caller is not root. Returns 0, or -1 with *err. */
int box_view_prepare(const struct box_spec *s, bool plain, struct hr_err *err);

/* Changes the caller, which is alone in new mount, PID and network namespaces, to the box's view.
 * May read a byte from `layers`, which the launcher sends when box_view_prepare() has returned.
 * Returns 0, or -1 with *err: then the caller must end. */
int box_view_enter(const struct box_spec *s, bool plain, int layers, struct hr_err *err);

#endif
