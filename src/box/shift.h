/* box_shift: makes the files of a running box a layer. The box continues in a new, empty top on
 * that layer; nothing is copied. */
#ifndef HR_BOX_SHIFT_H
#define HR_BOX_SHIFT_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"
#include "box/spec.h"

#define BOX_SHIFT_WHY 1024 /* room for every reason */

struct box_shift {
	pid_t pid;         /* the first process of the box */
	const char *layer; /* a directory on the storage's file system, which gets "files" */
	const char *root;  /* the box's root directory of its own; NULL: the host's programs */
	const char *below[BOX_BELOW_MAX]; /* the layers that the box has, topmost first */
	size_t nbelow;
};

/* Does it while all processes of the box are frozen, and none depends on the mount of the root, as
 * box_rest() finds. First removes what a killed process has left over the root. Returns 1, with a
 * `why` that is "" unless mounts of the box had to be replaced; 0 if nothing has changed, with the
 * reason in `why`; or -1 with *err: then a copy of the storage would lack files of the box, or
 * programs still write to the layer. A process may remain that waits until the kernel has written
 * the former root to the disk. */
int box_shift(
    const char *storage, const struct box_shift *s, char *why, size_t size, struct hr_err *err);

#endif
