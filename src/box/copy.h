/* box_copy: copies and removes the files that boxes have changed, which belong to all accounts of a
 * box. The box may run meanwhile, and nothing that it does misleads the copy: no link is followed,
 * and nothing but regular files is opened. */
#ifndef HR_BOX_COPY_H
#define HR_BOX_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define BOX_COPY_WITHOUT 4 /* maximum of paths that are left out */

struct box_copy {
	const char *from;  /* a directory */
	const char *to;    /* the name of a new directory */
	const char *group; /* the control group to freeze meanwhile; NULL: none */
	uint64_t most;     /* bytes that the copy may take; 0: no limit */
	const char *without[BOX_COPY_WITHOUT]; /* paths below `from` to leave out; NULL: no more */
};

/* Copies a storage, as the root of a box of this account. On btrfs the copy is a snapshot, which
 * shares the blocks of the disk with the original and has its sockets, too, and no limit holds for
 * it. The group is thawed again, also after a failure. Returns 0; 1 if the copy would take more
 * than `most`, and is incomplete; or -1 with *err. */
int box_copy(const struct box_copy *c, struct hr_err *err);

/* Prints {"files": N, "bytes": N} for a directory, as the root of a box of this account. Returns 0,
 * or -1 with *err. */
int box_copy_size(const char *path, struct hr_err *err);

/* Removes a directory with its contents, as the root of a box of this account. Returns 0, or -1
 * with *err. */
int box_copy_remove(const char *path, struct hr_err *err);

#endif
