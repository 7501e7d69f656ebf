/* hr_replace: a finished file takes the place of another one, whole or not at all. */
#ifndef HR_FILES_PLACE_REPLACE_H
#define HR_FILES_PLACE_REPLACE_H

#include <stdbool.h>
#include <sys/stat.h>

#include "base/scrap.h"

/* Moves from_dir/from to dir/leaf, which is the regular file *old: its mode and owner stay. If it
 * has other names (hard links), cannot be replaced since it is a mount point, or is somebody else's
 * and we are not root, its content is overwritten instead, after room was made sure of. Between two
 * file systems the content is copied beside it first. 0 or -1 with errno; dir/leaf is then as it
 * was, and from_dir/from is still there. */
int hr_replace(int from_dir, const char *from, int dir, const char *leaf, const struct stat *old);

/* The same where nothing is at dir/leaf; EEXIST if something is. A directory is moved, too, but not
 * to another file system (EXDEV). */
int hr_replace_none(int from_dir, const char *from, int dir, const char *leaf);

/* Overwrites the regular file dir/leaf, which stays the same one, with the content of an open file,
 * after room was made sure of. 0 or -1 with errno. */
int hr_replace_content(int from, int dir, const char *leaf);

/* All bytes of from (from its start) to the offset of to. 0 or -1 with errno. */
int hr_replace_copy(int from, int to);

#define HR_REPLACE_PREFIX HR_SCRAP_PREFIX
#define HR_REPLACE_NAME_MAX 48
/* A name that nobody has: HR_REPLACE_PREFIX, kind and 16 random digits. -1 with errno. */
int hr_replace_name(char name[HR_REPLACE_NAME_MAX], const char *kind);

#endif
