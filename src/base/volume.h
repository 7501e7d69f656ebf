/* hr_volume: subvolumes of btrfs, of which a snapshot takes the same short time for any number of
 * files. Elsewhere, and where the caller lacks a right, the functions say so, and the caller works
 * file by file. */
#ifndef HR_BASE_VOLUME_H
#define HR_BASE_VOLUME_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Makes the directory "name" in `dir` with the mode 0700: a subvolume where the file system has
 * them. Returns 0, or -1 with errno. */
int hr_volume_make(int dir, const char *name);

/* Makes "name" in `dir` a snapshot of the directory `from`, which may be written to. Returns false
 * if that is not possible: `from` is no subvolume, has subvolumes inside, which a snapshot would
 * lack, or is on another file system. */
bool hr_volume_snapshot(int from, int dir, const char *name);

/* Counts the names in the subvolume `fd`, and the bytes that its files and their extended
 * attributes take, from the file system's table: a lookup of each file takes ten times as long.
 * Returns false if that is not possible: `fd` is no subvolume, has subvolumes inside, or the caller
 * is not root. */
bool hr_volume_count(int fd, uint64_t *ret_names, uint64_t *ret_bytes);

/* Removes the directory "name" of `dir` with its contents, if *st, its lstat(2), may be that of a
 * subvolume. Returns false if it was not removed: it is none, has subvolumes inside, or is another
 * account's, or the file system is mounted without user_subvol_rm_allowed. */
bool hr_volume_remove(int dir, const char *name, const struct stat *st);

#endif
