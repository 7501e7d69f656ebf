/* box_copy: copies and removes the files that boxes have changed, which belong to all accounts of a
 * box. The box may run meanwhile, and nothing that it does misleads the copy: no link is followed,
 * and nothing but regular files is opened. */
#ifndef HR_BOX_COPY_H
#define HR_BOX_COPY_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define BOX_COPY_WITHOUT 6     /* maximum of paths that are left out */
#define BOX_COPY_FILES "files" /* name in the directory of a layer */
#define BOX_COPY_ENTRY 512     /* a name counts so much for the tables of the file system */
#define BOX_COPY_DEPTH                                                                             \
	240 /* levels of directories, so that HR_PATH_DEPTH reaches all of a copy                  \
	     */

struct box_copy {
	const char *from;                      /* a directory */
	const char *to;                        /* the name of a new directory */
	uint64_t most;                         /* bytes that the copy may take; 0: no limit */
	const char *without[BOX_COPY_WITHOUT]; /* paths below `from` to leave out */
	size_t nwithout;
};

/* Copies a storage, as the root of a box of this account. On btrfs the copy is a snapshot, which
 * shares the blocks of the disk with the original and has its sockets, too, and no limit holds for
 * it. Returns 0; 1 if the copy would take more than `most`, and is incomplete; or -1 with *err. */
int box_copy(const struct box_copy *c, struct hr_err *err);

/* Makes "files" in the directory `layer`, with all that an overlay of the n directories shows,
 * topmost first, and all that they hide of what lies below them. Returns 0, or -1 with *err and an
 * incomplete layer. */
int box_copy_join(const char *layer, const char *const *dirs, size_t n, struct hr_err *err);

/* Gives a new directory the owner, mode, times and extended attributes of `from`, without those of
 * overlays. Returns 0, or -1 with *err. */
int box_copy_properties(int from, int to, struct hr_err *err);

/* Removes a directory with its contents, as the root of a box of this account. Returns 0, or -1
 * with *err. */
int box_copy_remove(const char *path, struct hr_err *err);

#endif
