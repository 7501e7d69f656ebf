/* hr_reach: opening what a client or an agent names, in a process that may have the rights of root.
 *
 * By no name and no link is a descriptor, the memory or the environment of a process reached: links
 * of procfs that lead to what a process has open ("magic links") are not followed, and of procfs
 * only what everybody may read is opened. Nor is a disk itself, or a file with secrets of the
 * server's own.
 *
 * Where a link that is not root's is on the way, the account of the shell may have made it in order
 * to have root open what it leads to: hr_reach_open_as() follows it with that account's rights. */
#ifndef HR_FILES_PLACE_REACH_H
#define HR_FILES_PLACE_REACH_H

#include <stdbool.h>
#include <sys/types.h>

#define HR_REACH_HIDDEN 4

struct hr_reach {
	uid_t shell;                         /* its account; 0: all links are followed */
	const char *hidden[HR_REACH_HIDDEN]; /* files that are opened by no name; NULL: none */
};

/* For all that comes; borrowed for good. Without it: no such account and no such files. A module
 * has its own copy of this, and is told by whoever loads it. */
void hr_reach_rules(const struct hr_reach *rules);
const struct hr_reach *hr_reach_get_rules(void);

/* open(2) of what exists, relative to dir (AT_FDCWD, or a directory), close-on-exec. -1 with errno,
 * EACCES for what is not to be reached. */
int hr_reach_open(int dir, const char *path, int flags);
/* The same, with the rule about links. With `change` the account must also be allowed to write to
 * what a link led to. Where we are not root ourselves the rule is the kernel's. */
int hr_reach_open_as(int dir, const char *path, int flags, bool change);
/* The same for what is changed, and tells whether it was the account who could open it. */
int hr_reach_open_whose(int dir, const char *path, int flags, bool *ret_shells);
/* mkdir of one name below what the account was to open: it is the account who makes it. */
int hr_reach_mkdir(int dir, const char *name, mode_t mode, bool shells);
/* The same for a link. */
int hr_reach_symlink(const char *target, int dir, const char *name, bool shells);
/* As hr_beneath_open() with links, for what is changed, with the same rule; the links of root are
 * none of their own. */
int hr_reach_beneath(int root, const char *path, int flags);

/* Takes fd, which may be -1: is it of what is not to be reached? Then -1 with EACCES. */
int hr_reach_check(int fd);

/* hr_reach_open() without openat2 (base/plain.h). With `roots_links` only links that are root's are
 * followed (EACCES). */
int hr_reach_walk(int dir, const char *path, int flags, bool roots_links);

#endif
