/* hr_dir: reads a directory. */
#ifndef HR_BASE_DIR_H
#define HR_BASE_DIR_H

#include <dirent.h>
#include <stdbool.h>

#include "base/clean.h"

/* Takes ownership of fd, also on failure. Returns NULL with errno; with fd < 0, NULL and an
 * unchanged errno. */
DIR *hr_dir_take(int fd);

/* Declares a directory local to a block, closed when the block is left; NULL at first. */
#define HR_CLOSEDIR HR_CLEAN(hr_dir_close)
void hr_dir_close(DIR **d); /* Accepts a NULL *d. */

/* Returns the next entry, skipping "." and ".."; or NULL at the end (errno is 0) or on a
 * failure. */
struct dirent *hr_dir_next(DIR *d);

/* Returns true if the entry of `dir` is a directory itself, not a link to one. */
bool hr_dir_is_directory(int dir, const struct dirent *e);

#endif
