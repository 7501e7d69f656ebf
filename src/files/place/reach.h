/* hr_reach: opens files that a client or an agent names, in a process that may run as root.
 *
 * No name and no link gives access to a descriptor, the memory or the environment of a process:
 * links of procfs that lead to a process's open files ("magic links") are not followed, and files
 * of procfs are opened only if everybody may read them. Block devices and files with the server's
 * secrets are refused as well.
 *
 * If a link that root does not own is on the path, the shell's account may have made it in order to
 * have root open its target: hr_reach_open_as() follows it with that account's rights. */
#ifndef HR_FILES_PLACE_REACH_H
#define HR_FILES_PLACE_REACH_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/account.h"

#define HR_REACH_HIDDEN 4

struct hr_reach {
	uid_t shell;                         /* the shell's account; 0: all links are followed */
	const char *hidden[HR_REACH_HIDDEN]; /* files that must never be opened; NULL: no file */
	const char *run_dir;                 /* no client makes directories here; NULL: none */
};

/* Sets the rules for all later calls; borrowed for ever. Without rules there is no such account and
 * no such file. A module has its own copy of this variable, which its loader sets. */
void hr_reach_rules(const struct hr_reach *rules);
const struct hr_reach *hr_reach_get_rules(void);

/* Opens an existing file as open(2) does, relative to dir (AT_FDCWD, or a directory),
 * close-on-exec. Returns -1 with errno; EACCES for a file that must not be reached. */
int hr_reach_open(int dir, const char *path, int flags);
/* Works as hr_reach_open(), with the rule about links. With `change` the account must also be
 * allowed to write to the target of a link. If this process is not root, the kernel's rule
 * applies. */
int hr_reach_open_as(int dir, const char *path, int flags, bool change);
/* Works as hr_reach_open_as(AT_FDCWD) with change; *ret_shells is set if the account's rights were
 * used to open the file. */
int hr_reach_open_whose(const char *path, int flags, bool *ret_shells);
/* Gives this process the rights of the shell's account until hr_account_leave(). Returns 0, or -1
 * with errno. */
int hr_reach_enter(struct hr_account_own *own);
/* Returns true if `fd` is a directory on the way to a file with the server's secrets. */
bool hr_reach_leads_to_hidden(int fd);
/* Keeps clients from the server's run directory. Takes fd, which may be -1. Returns it, or -1 with
 * EACCES if it is in that directory or, for `removal`, contains it. */
int hr_reach_keep_out(const char *run_dir, int fd, bool removal);
/* Makes one directory; with `shells`, using the account's rights. */
int hr_reach_mkdir(int dir, const char *name, mode_t mode, bool shells);
/* Makes a symbolic link in the same way. */
int hr_reach_symlink(const char *target, int dir, const char *name, bool shells);
/* Works as hr_beneath_open() with links, for files to be changed, with the same rule; links owned
 * by root are followed. */
int hr_reach_beneath(int root, const char *path, int flags);

/* Takes fd, which may be -1. Returns it, or -1 with EACCES if it must not be reached. */
int hr_reach_check(int fd);

/* Works as hr_reach_open() without openat2 (base/plain.h). With `roots_links` only links that root
 * owns are followed (EACCES). */
int hr_reach_walk(int dir, const char *path, int flags, bool roots_links);

#endif
