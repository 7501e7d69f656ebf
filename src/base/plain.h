/* hr_plain: opening by a name that somebody else gave. The links of procfs to what a process has
 * open
 * ("magic links": /proc/PID/fd/N, root, cwd, exe) are not followed: they lead past the rights that
 * are asked for a path. Descriptors are close-on-exec; -1 is with errno. */
#ifndef HR_BASE_PLAIN_H
#define HR_BASE_PLAIN_H

#include <stdbool.h>
#include <sys/types.h>

/* open(2) of what exists, relative to dir (AT_FDCWD, or a directory). EACCES: a magic link is on
 * the way. */
int hr_plain_open(int dir, const char *path, int flags);

/* The same where the kernel does it; `resolve`: further RESOLVE_* of openat2(2). ENOSYS: it cannot;
 * ELOOP: a link is on the way that may not be followed. */
int hr_plain_openat2(int dir, const char *path, int flags, unsigned resolve);

/* The same without openat2, one name after the other. With `roots_links` only links that are root's
 * are followed (EACCES). */
int hr_plain_walk(int dir, const char *path, int flags, bool roots_links);

/* The same, where only links of root and of the account `owner` are followed (EACCES). */
int hr_plain_walk_as(int dir, const char *path, int flags, uid_t owner);

bool hr_plain_is_proc(int fd); /* of a procfs */

#endif
