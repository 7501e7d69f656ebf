/* hr_beneath: names that cannot leave a directory, whatever symbolic links others put in their way
 * meanwhile. */
#ifndef HR_FILES_PLACE_BENEATH_H
#define HR_FILES_PLACE_BENEATH_H

#include <stdbool.h>

/* Opens path, relative to the directory root, close-on-exec. -1 with errno; EXDEV: the way leads
 * out of root (an absolute name, "..", a link). With `links` symbolic links that stay inside are
 * followed, otherwise none is (ELOOP). ".." may be passed as long as it stays inside. An empty path
 * is root itself. Where the kernel has no openat2 no link is followed and no ".." passed. */
int hr_beneath_open(int root, const char *path, int flags, bool links);

/* What hr_beneath_open() does without openat2; EXDEV for any link. */
int hr_beneath_walk(int root, const char *path, int flags);

/* mkdir -p of path beneath root, where no component may be a link: a descriptor (O_PATH) of the
 * last directory, or -1 with errno. */
int hr_beneath_mkdirs(int root, const char *path);

#endif
