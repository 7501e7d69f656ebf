/* hr_spool: new bytes of a file, which take the place of a user's file whole or not at all. The one
 * way in which files/ puts a file where another one may be.
 *
 * A spool has no name until it is whole, so that whatever happens to us, nothing of it is left;
 * where the file system knows no such files it has a name that begins with a dot and goes with the
 * spool. Then it gets the old file's owner, mode, access list and extended attributes, and takes
 * its place by rename(). A reader, or a kill at any moment, sees the old file or the new one.
 *
 * The old inode must stay where other names of it exist (hard links), where its directory takes no
 * file from us, where owner or attributes cannot be given to another file, and where it is a mount
 * point. Then the bytes are copied into it once the space for them is reserved: a full disk leaves
 * the old content, a kill in the middle of the copy does not. */
#ifndef HR_FILES_PLACE_SPOOL_H
#define HR_FILES_PLACE_SPOOL_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/tempfiles.h"
#include "files/place/target.h"

struct hr_spool {
	int fd;                  /* for reading and writing; -1: not open */
	int dir;                 /* of name */
	char name[NAME_MAX + 1]; /* "": it has none */
};

void hr_spool_init(struct hr_spool *s);
/* In the directory, or in the nearest one above it that exists. 0 or -1 with errno. */
int hr_spool_open(struct hr_spool *s, const char *directory);
/* In an open directory (O_PATH will do), with that mode but for the umask's bits. `over`: an
 * existing file is to get the bytes, so that the spool may be in $TMPDIR where we may not make
 * files. 0 or -1 with errno. */
int hr_spool_open_at(struct hr_spool *s, int dir, mode_t mode, bool over);
/* 0 or -1 with errno. */
int hr_spool_write(struct hr_spool *s, const char *p, size_t len);
/* Makes it dir/leaf. `old` is the file there, open for writing; -1: what is there is looked for, no
 * link followed. 0, or -1 with errno; dir/leaf is then as it was. */
int hr_spool_put(struct hr_spool *s, int dir, const char *leaf, int old);
/* Makes it the file of that target, which is looked for again. 0, or -1 with the contract's text;
 * the target is then as it was. The spool stays open for reading either way. */
int hr_spool_place(struct hr_spool *s, const struct hr_target *t, struct hr_buf *why);
void hr_spool_close(struct hr_spool *s); /* what was not placed is gone */

/* The same for from_dir/from, a finished file in a directory of ours. Where nothing is at dir/leaf
 * a directory is moved, too, but not to another file system (EXDEV). 0 or -1 with errno; dir/leaf
 * is then as it was. */
int hr_spool_move(int from_dir, const char *from, int dir, const char *leaf);

#define HR_SPOOL_PREFIX HR_TEMPFILE_PREFIX
#define HR_SPOOL_NAME 48
/* A name that nobody has: HR_SPOOL_PREFIX, kind and 16 random digits. -1 with errno. */
int hr_spool_name(char name[HR_SPOOL_NAME], const char *kind);

#endif
