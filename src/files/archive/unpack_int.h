/* What the two halves of hr_unpack share: unpack.c fills the staging directory, merge.c empties it.
 */
#ifndef HR_FILES_ARCHIVE_UNPACK_INT_H
#define HR_FILES_ARCHIVE_UNPACK_INT_H

#include "files/archive/unpack.h"

struct hr_merge {
	int root;              /* of the directory */
	const char *directory; /* its name, for messages */
	struct hr_buf *why;
};

/* Every name in `stage` against what is at the same place below root. 0 or -1 with the text. */
int hr_merge_check(const struct hr_merge *m, int stage);
/* Moves them there. After hr_merge_check() it fails only if somebody changes things meanwhile or
 * the directory cannot be written to. */
int hr_merge_move(const struct hr_merge *m, int stage);

#endif
