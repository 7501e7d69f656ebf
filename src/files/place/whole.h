/* hr_whole: files whose size is no promise. Those of the kernel (/proc, /sys) report 0 or a page,
 * and so do some of other file systems. */
#ifndef HR_FILES_PLACE_WHOLE_H
#define HR_FILES_PLACE_WHOLE_H

#include <stdbool.h>
#include <sys/stat.h>

#define HR_WHOLE_MAX (64u << 20) /* bytes of such a file */

/* Whether an open file or directory is of a file system of the kernel, also where that cannot be
 * found out: what is read there may wait for ever, or be without an end. */
bool hr_whole_is_kernels(int fd);

/* Puts the bytes of such a regular file, read to its end, into a file in memory, which takes the
 * place of *fd, and its size into *st; a file that is as long as it says is left alone. Returns 0,
 * or -1 with errno (EFBIG: it is longer than HR_WHOLE_MAX). */
int hr_whole_take(int *fd, struct stat *st);

#endif
