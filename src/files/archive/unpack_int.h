/* Connects the halves of hr_unpack: unpack.c fills the staging directory, merge.c empties it. */
#ifndef HR_FILES_ARCHIVE_UNPACK_INT_H
#define HR_FILES_ARCHIVE_UNPACK_INT_H

#include "files/archive/unpack.h"

struct hr_merge {
	int root;              /* descriptor of the target directory */
	const char *directory; /* the directory's name, for messages */
	struct hr_buf *why;
};

/* Checks every name in `stage` against its place below root. Returns 0, or -1 with the text in
 * why. */
int hr_merge_check(const struct hr_merge *m, int stage);
/* Moves the entries there. After hr_merge_check() it fails only if another process changes the tree
 * meanwhile or the directory is not writable. */
int hr_merge_move(const struct hr_merge *m, int stage);

#endif
