/* hr_path: names of files, and the few operations on files that several programs need. Everything
 * that walks or removes goes by directory descriptors and never follows a symbolic link, since
 * others may write in the directories we look after. */
#ifndef HR_BASE_PATH_H
#define HR_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* "dir/name" with one slash between; an absolute name replaces dir. The caller frees; NULL: no
 * memory. */
char *hr_path_join(const char *dir, const char *name);
/* The first "dir/name" that can be run, of a list as PATH is one (NULL: none); the caller frees. */
char *hr_path_which(const char *dirs, const char *name);
/* What is behind the last slash; borrowed. */
const char *hr_path_leaf(const char *path);
/* Whether a name below a directory may lead out of it: it is absolute, or has a component "..". */
bool hr_path_leads_out(const char *path);
/* An absolute form of path without looking at the disk ("." and ".." stay); the caller frees. */
char *hr_path_absolute(const char *path, struct hr_err *err);

/* mkdir -p: every missing directory with `mode` (umask applies). *ret_made (may be NULL): how many
 * were made. An existing last component that is not a directory is an error. */
int hr_path_mkdirs(const char *path, mode_t mode, unsigned *ret_made, struct hr_err *err);

/* The same for a directory of this program's own, whose name another account could have taken, as
 * below /tmp: no link is followed but those of root and of this account (HR_E_UNTRUSTED). Returns
 * 0, or -1 with *err set. */
int hr_path_mkdirs_own(const char *path, mode_t mode, unsigned *ret_made, struct hr_err *err);

/* Opens a file of this program's own at such a name, for writing, and makes it if it is missing.
 * A FIFO or a socket of that name is refused (HR_E_INVAL). Returns a descriptor (close-on-exec), or
 * -1 with *err set. */
int hr_path_open_own(const char *path, int flags, mode_t mode, struct hr_err *err);

/* The whole file, at most the cap of b. */
int hr_path_read(const char *path, struct hr_buf *b, struct hr_err *err);
/* From where fd is; the path is for the error. */
int hr_path_read_fd(int fd, const char *path, struct hr_buf *b, struct hr_err *err);
/* Old or new, never half: a temporary beside it, then rename. */
int hr_path_write(const char *path, const void *p, size_t len, mode_t mode, struct hr_err *err);
/* The same for a file of another account, which has it before it has its name; HR_PATH_OWN: the
 * caller's. */
#define HR_PATH_OWN ((uid_t)-1)
int hr_path_write_for(
    const char *path, const void *p, size_t len, mode_t mode, uid_t owner, struct hr_err *err);

/* Called for everything below and for the top itself, after what is in it; a negative return stops
 * the walk. dirfd and name are for the *at() calls with AT_SYMLINK_NOFOLLOW. */
typedef int hr_path_visit_fn(int dirfd, const char *name, const struct stat *st, void *arg);
/* 0, or the negative return of fn. What cannot be looked at or opened is skipped: *ret_skipped (may
 * be NULL) counts it. Directories deeper than HR_PATH_DEPTH count as such. */
#define HR_PATH_DEPTH 256
int hr_path_walk(const char *path, hr_path_visit_fn *fn, void *arg, unsigned *ret_skipped);

/* rm -r: no error if there is nothing. */
int hr_path_remove(const char *path, struct hr_err *err);

#endif
