/* hr_plain: opens names that came from another party. Magic links of procfs (/proc/PID/fd/N, root,
 * cwd, exe) are not followed: they bypass the permissions of the path. Descriptors are
 * close-on-exec; -1 comes with errno. */
#ifndef HR_BASE_PLAIN_H
#define HR_BASE_PLAIN_H

#include <stdbool.h>
#include <sys/types.h>

/* Opens an existing file relative to dir (AT_FDCWD or a directory), as open(2) does. EACCES: the
 * path contains a magic link. */
int hr_plain_open(int dir, const char *path, int flags);

/* Does the same with the kernel's openat2(2); `resolve`: further RESOLVE_* flags. ENOSYS: the
 * kernel lacks openat2; ELOOP: the path contains a link that must not be followed. */
int hr_plain_openat2(int dir, const char *path, int flags, unsigned resolve);

/* Does the same without openat2, one component at a time. With `roots_links` only root's links are
 * followed (EACCES). */
int hr_plain_walk(int dir, const char *path, int flags, bool roots_links);

/* Does the same, following only links of root and of the account `owner` (EACCES). */
int hr_plain_walk_as(int dir, const char *path, int flags, uid_t owner);

bool hr_plain_is_proc(int fd); /* Returns true if fd is on a procfs. */

#endif
