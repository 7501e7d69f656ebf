/* hr_whole: reads files whose reported size is wrong. Those of the kernel (/proc, /sys) report 0 or
 * a page, and so do those of some other file systems. */
#ifndef HR_FILES_PLACE_WHOLE_H
#define HR_FILES_PLACE_WHOLE_H

#include <stdbool.h>
#include <sys/stat.h>

#define HR_WHOLE_MAX (64u << 20) /* maximum bytes of such a file */

/* Returns true if an open file or directory belongs to a file system of the kernel, or if that
 * cannot be determined: a read there may block for ever, or never end. */
bool hr_whole_is_kernels(int fd);

/* Reads such a regular file to its end into a memory file, which replaces *fd, and puts its size
 * into *st; a file of the size that it reports is left alone. Returns 0, or -1 with errno (EFBIG:
 * longer than HR_WHOLE_MAX). */
int hr_whole_take(int *fd, struct stat *st);

#endif
