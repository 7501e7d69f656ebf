/* hr_dir: reading a directory. */
#ifndef HR_BASE_DIR_H
#define HR_BASE_DIR_H

#include <dirent.h>
#include <stdbool.h>

/* Takes fd, also where it fails: NULL with errno. fd < 0: NULL, errno stays what it is. */
DIR *hr_dir_take(int fd);

/* The next entry, without "." and "..". NULL: none is left (errno is 0) or reading failed. */
struct dirent *hr_dir_next(DIR *d);

/* An entry of dir, itself: not what a link leads to. */
bool hr_dir_is_directory(int dir, const struct dirent *e);

#endif
