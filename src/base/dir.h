/* hr_dir: reading a directory. */
#ifndef HR_BASE_DIR_H
#define HR_BASE_DIR_H

#include <dirent.h>
#include <stdbool.h>

#include "base/clean.h"

/* Takes fd, also where it fails: NULL with errno. fd < 0: NULL, errno stays what it is. */
DIR *hr_dir_take(int fd);

/* A directory of a block's own, closed where the block is left; NULL at the beginning. */
#define HR_CLOSEDIR HR_CLEAN(hr_dir_close)
void hr_dir_close(DIR **d); /* *d may be NULL */

/* The next entry, without "." and "..". NULL: none is left (errno is 0) or reading failed. */
struct dirent *hr_dir_next(DIR *d);

/* An entry of dir, itself: not what a link leads to. */
bool hr_dir_is_directory(int dir, const struct dirent *e);

#endif
