/* hr_path: names of files, and the few operations on files that several programs need. Walks and
 * removals use directory descriptors and never follow a symbolic link, since other accounts may
 * write in these directories. */
#ifndef HR_BASE_PATH_H
#define HR_BASE_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

/* Returns "dir/name" with one slash between; an absolute name replaces dir. The caller frees; NULL:
 * no memory. */
char *hr_path_join(const char *dir, const char *name);
/* Returns the first executable "dir/name" of a list like PATH, or NULL; the caller frees. */
char *hr_path_which(const char *dirs, const char *name);
/* Returns the part after the last slash; borrowed. */
const char *hr_path_leaf(const char *path);
/* Returns the last component without slashes, "" for "/"; the caller frees. */
char *hr_path_name(const char *path);
/* Returns true if a name below a directory may lead out of it: it is absolute, or has a component
 * "..". */
bool hr_path_leads_out(const char *path);
/* Returns true if path is the directory or lies below it, by their names alone. */
bool hr_path_is_within(const char *path, const char *directory);
/* Returns true if path leads to a directory, by way of links too. */
bool hr_path_is_directory(const char *path);
/* Returns an absolute form of path without looking at the disk ("." and ".." stay); the caller
 * frees. */
char *hr_path_absolute(const char *path, struct hr_err *err);

/* Makes every missing directory with `mode` (umask applies), as mkdir -p. *ret_made (may be NULL):
 * the number made. An existing last component that is not a directory is an error. */
int hr_path_mkdirs(const char *path, mode_t mode, unsigned *ret_made, struct hr_err *err);

/* Does the same for a directory of this program, whose name another account could have taken, as
 * below /tmp: follows no links but those of root and of this account (HR_E_UNTRUSTED). Returns 0,
 * or -1 with *err set. */
int hr_path_mkdirs_own(const char *path, mode_t mode, unsigned *ret_made, struct hr_err *err);

/* Opens a file of this program at such a name for writing, and makes it if it is missing. Refuses a
 * FIFO or a socket of that name (HR_E_INVAL). Returns a descriptor (close-on-exec), or -1 with *err
 * set. */
int hr_path_open_own(const char *path, int flags, mode_t mode, struct hr_err *err);

/* Appends the whole file, at most the cap of b. */
int hr_path_read(const char *path, struct hr_buf *b, struct hr_err *err);
/* Appends the rest of fd from its position; `path` is for the error. */
int hr_path_read_fd(int fd, const char *path, struct hr_buf *b, struct hr_err *err);
/* Replaces the file atomically: writes a temporary file beside it, then renames that. Waits for
 * another writer of the path, up to two seconds. The temporary file of a killed writer is replaced
 * by the next writer of the same path, and removed by hr_path_clean() and hr_path_unlink(). */
#define HR_PATH_UNFINISHED "~" /* suffix of the temporary file */
int hr_path_write(const char *path, const void *p, size_t len, mode_t mode, struct hr_err *err);
/* Does the same for a file of another account, which owns the file before it gets its name;
 * HR_PATH_OWN: the caller's. */
#define HR_PATH_OWN ((uid_t)-1)
int hr_path_write_for(
    const char *path, const void *p, size_t len, mode_t mode, uid_t owner, struct hr_err *err);

/* Opens a new file without a name in the directory, for reading and writing. On a file system that
 * has no such files its name is removed at once. Returns a descriptor, or -1 with errno. */
int hr_path_unnamed(const char *dir);
/* Opens such a file, which hr_path_link() can name, in the directory at/dir. Returns a descriptor,
 * or -1 with errno: EOPNOTSUPP if a new file must have a name there. */
int hr_path_unnamed_at(int at, const char *dir, mode_t mode);
/* Returns 0, or -1 with errno. */
int hr_path_link(int fd, int dir, const char *name);

/* Opens a file for reading and writing that becomes `path` as a whole, by hr_path_put(). Until then
 * it has no name or, where it must have one, *ret_tmp in the same directory; the caller frees that.
 * Returns a descriptor, or -1 with *err set. */
int hr_path_new(const char *path, mode_t mode, char **ret_tmp, struct hr_err *err);
/* Closes fd of hr_path_new() and, if r is 0, makes the file `path`: `over` replaces an existing
 * file, which is an error otherwise. Discards the file if r is -1, or after an error. Returns 0, or
 * -1 with *err set. */
int hr_path_put(int fd, const char *tmp, const char *path, bool over, int r, struct hr_err *err);

/* Removes the temporary file of a writer that was killed. Returns false with errno: EWOULDBLOCK if
 * another process writes, or why the file cannot be removed. */
bool hr_path_clean(const char *path);
/* Removes a file of hr_path_write() and its temporary file. Returns what unlink() of the file
 * returns, with errno. */
int hr_path_unlink(const char *path);

/* Called for every entry below the top and then for the top itself, a directory after its contents;
 * a negative return stops the walk. dirfd and name are for the *at() calls with
 * AT_SYMLINK_NOFOLLOW. */
typedef int hr_path_visit_fn(int dirfd, const char *name, const struct stat *st, void *arg);
/* Returns 0, or the negative return of fn. Entries that cannot be examined or opened are skipped
 * and counted in *ret_skipped (may be NULL), as are directories deeper than HR_PATH_DEPTH. */
#define HR_PATH_DEPTH 256
int hr_path_walk(const char *path, hr_path_visit_fn *fn, void *arg, unsigned *ret_skipped);

/* Renames an entry where nothing has the new name. Returns 0, or -1 with errno: EEXIST. On a file
 * system that cannot do it in one step a file that comes in between is replaced. */
int hr_path_rename_free(int from_dir, const char *from, int to_dir, const char *to);

/* Removes a tree of any depth, as rm -r; a missing path is no error. */
int hr_path_remove(const char *path, struct hr_err *err);

#endif
