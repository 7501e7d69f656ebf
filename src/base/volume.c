#include "config.h"

#include "base/volume.h"

#include <errno.h>
#include <linux/btrfs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#define TOP_INODE 256 /* BTRFS_FIRST_FREE_OBJECTID, the number of the top of each subvolume */

/* Copies a name into a request. Returns false with ENAMETOOLONG. */
static bool
set_name(char *to, size_t cap, const char *name)
{
	const size_t n = strlen(name);

	errno = ENAMETOOLONG;
	if (n >= cap)
		return false;
	memcpy(to, name, n + 1);
	return true;
}

int
hr_volume_make(int dir, const char *name)
{
	struct btrfs_ioctl_vol_args v = {0};

	if (!set_name(v.name, sizeof(v.name), name))
		return -1;
	if (ioctl(dir, BTRFS_IOC_SUBVOL_CREATE, &v) == 0)
		return fchmodat(dir, name, 0700, 0);
	return errno != EEXIST ? mkdirat(dir, name, 0700) : -1;
}

bool
hr_volume_snapshot(int from, int dir, const char *name)
{
	struct btrfs_ioctl_vol_args_v2 v = {.fd = from};
	struct btrfs_ioctl_get_subvol_rootref_args inside = {0};
	struct stat st;

	return fstat(from, &st) == 0 && st.st_ino == TOP_INODE &&
	       ioctl(from, BTRFS_IOC_GET_SUBVOL_ROOTREF, &inside) == 0 && inside.num_items == 0 &&
	       set_name(v.name, sizeof(v.name), name) &&
	       ioctl(dir, BTRFS_IOC_SNAP_CREATE_V2, &v) == 0;
}

bool
hr_volume_remove(int dir, const char *name, const struct stat *st)
{
	struct btrfs_ioctl_vol_args v = {0};

	return S_ISDIR(st->st_mode) && st->st_ino == TOP_INODE &&
	       set_name(v.name, sizeof(v.name), name) &&
	       ioctl(dir, BTRFS_IOC_SNAP_DESTROY, &v) == 0;
}
