/* hr_spool: writes new content that replaces a user's file as a whole or not at all. All of files/
 * puts files in place in this way. A spool has no name until it is complete, so that nothing
 * remains after a kill; on a file system without O_TMPFILE it has a name that begins with a dot and
 * is removed with the spool. Then it gets the old file's owner, mode, access list and extended
 * attributes, and replaces it by rename(). A reader, or a kill at any time, sees the old file or
 * the new one. The old inode must stay if it has other names (hard links), if this process cannot
 * create files in its directory, if owner or attributes cannot be given to another file, or if it
 * is a mount point. Then the bytes are copied into it once their space is reserved: a full disk
 * leaves the old content, a kill in the middle of the copy does not. */
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
	int fd;                  /* open for reading and writing; -1: not open */
	int dir;                 /* the directory that contains `name` */
	char name[NAME_MAX + 1]; /* "": the spool has no name */
};

void hr_spool_init(struct hr_spool *s);
/* Opens a spool in the directory or its nearest existing parent. Returns 0, or -1 with errno. */
int hr_spool_open(struct hr_spool *s, const char *directory);
/* Opens a spool in an open directory (O_PATH suffices), with that mode less the umask. `over`: an
 * existing file will get the bytes, so the spool may be in $TMPDIR if this process cannot create
 * files in dir. Returns 0, or -1 with errno. */
int hr_spool_open_at(struct hr_spool *s, int dir, mode_t mode, bool over);
/* Returns 0, or -1 with errno. */
int hr_spool_write(struct hr_spool *s, const char *p, size_t len);
/* Makes the spool dir/leaf. `old` is the existing file, open for writing; with -1 the file is
 * looked up without following links. Returns 0, or -1 with errno; dir/leaf is then unchanged. */
int hr_spool_put(struct hr_spool *s, int dir, const char *leaf, int old);
/* Makes the spool the target's file, which is looked up again. Returns 0, or -1 with the contract's
 * text; the target is then unchanged. The spool stays open for reading either way. */
int hr_spool_place(struct hr_spool *s, const struct hr_target *t, struct hr_buf *why);
/* Makes the spool the target's file like hr_spool_place(), but replaces nothing: returns -1 with
 * *ret_exists true if the target's name is taken. */
int hr_spool_place_new(
    struct hr_spool *s, const struct hr_target *t, bool *ret_exists, struct hr_buf *why);
void hr_spool_close(struct hr_spool *s); /* Discards a spool that was not placed. */

/* Moves from_dir/from, a finished file in a directory of handrail's. Where dir/leaf does not exist
 * a directory can be moved too, but not to another file system (EXDEV). Returns 0, or -1 with
 * errno; dir/leaf is then unchanged. */
int hr_spool_move(int from_dir, const char *from, int dir, const char *leaf);

#define HR_SPOOL_PREFIX HR_TEMPFILE_PREFIX
#define HR_SPOOL_NAME 48
/* Makes an unused name: HR_SPOOL_PREFIX, kind and 16 random digits. Returns -1 with errno. */
int hr_spool_name(char name[HR_SPOOL_NAME], const char *kind);

#endif
