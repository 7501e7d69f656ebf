/* hr_beneath: opens names that cannot leave a directory, whatever symbolic links others create on
 * the path meanwhile. */
#ifndef HR_FILES_PLACE_BENEATH_H
#define HR_FILES_PLACE_BENEATH_H

#include <stdbool.h>

/* Opens path relative to the directory root, close-on-exec. Returns -1 with errno; EXDEV: the path
 * leads out of root (an absolute name, "..", a link). With `links`, symbolic links that stay inside
 * are followed, otherwise no link is (ELOOP). ".." may occur as long as it stays inside. An empty
 * path is root itself. Without openat2 in the kernel no link is followed and ".." is refused. */
int hr_beneath_open(int root, const char *path, int flags, bool links);

/* Works as hr_beneath_open() without openat2; fails with EXDEV for any link. */
int hr_beneath_walk(int root, const char *path, int flags);

/* Makes path beneath root as mkdir -p does; no component may be a link. Returns a descriptor
 * (O_PATH) of the last directory, or -1 with errno. */
int hr_beneath_mkdirs(int root, const char *path);

#endif
