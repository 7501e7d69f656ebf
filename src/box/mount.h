/* box_mount: mounts without a place, which appear where they are moved to. All functions but
 * box_mount_move(), box_mount_put() and box_mount_flags() return a descriptor, and all but
 * box_mount_put() return -1 with errno. */
#ifndef HR_BOX_MOUNT_H
#define HR_BOX_MOUNT_H

#include <linux/mount.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* Copies the mount at a path, or at `at` itself for "". at -1 stands for a file that could not be
 * opened, whose errno stays. */
int box_mount_copy(int at, const char *path, unsigned flags);
/* Copies the mount at `path` of the host, with all mounts below it. */
int box_mount_bound(const char *path, bool writable);
/* Makes a new file system with options, which are by turns a name and a value, NULL at the end. */
int box_mount_new(const char *type, const char *const *options, unsigned attributes);
int box_mount_move(int from, const char *to);
/* Moves a mount to a path below the working directory, and makes that place if it is missing. The
 * working directory must be the root of this process. Links on the way are followed: until the
 * host's root is detached, only paths whose directories the caller has just made are safe. Returns
 * 0, or -1 with *err. */
int box_mount_put(int fd, const char *target, bool is_file, struct hr_err *err);
int box_mount_flags(int fd, unsigned flags, uint64_t attributes);

/* Opens a path of the document. A link in it is an error: another account could have changed it
 * since the caller looked. */
int box_mount_path(const char *path, uint64_t flags);
/* Opens a directory below another one, by a path without links, ".." and mounts. */
int box_mount_within(int top, const char *path);

#endif
