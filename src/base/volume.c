#include "config.h"

#include "base/volume.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/random.h"

#define FOUND_MAX (1u << 20) /* bytes of one answer */
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

/* Makes the directory in a block group of its own on ext4, as below a "top" directory such as
 * /home, where the name chooses among groups with as few directories. Without a journal, as virtual
 * machines often have it, ext4 gives the number of a removed file to no other for minutes, and for
 * each new file of the group looks at all of those: copies that come and go would take ten times as
 * long. */
static int
make_apart(int dir, const char *name)
{
	char digits[17], *made;
	int flags, r = -1, e;

	if (ioctl(dir, FS_IOC_GETFLAGS, &flags) != 0)
		return mkdirat(dir, name, 0700);
	if ((flags & FS_TOPDIR_FL) == 0) {
		flags |= FS_TOPDIR_FL;
		if (ioctl(dir, FS_IOC_SETFLAGS, &flags) != 0)
			return mkdirat(dir, name, 0700);
	}
	if (hr_random_hex(digits, 16, NULL) != 0 || asprintf(&made, "%s.%s", name, digits) < 0)
		return mkdirat(dir, name, 0700);
	if (mkdirat(dir, made, 0700) == 0 &&
	    (r = renameat2(dir, made, dir, name, RENAME_NOREPLACE)) != 0) {
		e = errno;
		(void)unlinkat(dir, made, AT_REMOVEDIR);
		errno = e;
	}
	free(made);
	return r;
}

int
hr_volume_make(int dir, const char *name)
{
	struct btrfs_ioctl_vol_args v = {0};

	if (!set_name(v.name, sizeof(v.name), name))
		return -1;
	if (ioctl(dir, BTRFS_IOC_SUBVOL_CREATE, &v) == 0)
		return fchmodat(dir, name, 0700, 0);
	return errno != EEXIST ? make_apart(dir, name) : -1;
}

/* Returns true for a subvolume that has no others inside. */
static bool
is_single(int fd, struct stat *ret_st)
{
	struct btrfs_ioctl_get_subvol_rootref_args inside = {0};

	return fstat(fd, ret_st) == 0 && ret_st->st_ino == TOP_INODE &&
	       ioctl(fd, BTRFS_IOC_GET_SUBVOL_ROOTREF, &inside) == 0 && inside.num_items == 0;
}

bool
hr_volume_snapshot(int from, int dir, const char *name)
{
	struct btrfs_ioctl_vol_args_v2 v = {.fd = from};
	struct stat st;

	return is_single(from, &st) && set_name(v.name, sizeof(v.name), name) &&
	       ioctl(dir, BTRFS_IOC_SNAP_CREATE_V2, &v) == 0;
}

/* Adds an item of the table. */
static void
add_item(const struct btrfs_ioctl_search_header *h, const char *data, uint64_t block,
    uint64_t *ret_names, uint64_t *ret_bytes)
{
	struct btrfs_inode_item inode;

	if (h->type == BTRFS_XATTR_ITEM_KEY)
		*ret_bytes += h->len;
	if (h->type != BTRFS_INODE_ITEM_KEY || h->len < sizeof(inode))
		return;
	memcpy(&inode, data, sizeof(inode));
	/* a file without a name was open when it was removed */
	if (inode.nlink == 0)
		return;
	*ret_names += le32toh(inode.nlink);
	/* st_blocks, too, is in whole blocks */
	*ret_bytes += (le64toh(inode.nbytes) + block - 1) / block * block;
}

/* Sets the lowest key of the next answer. Returns false if there is none. */
static bool
go_past(struct btrfs_ioctl_search_key *k, const struct btrfs_ioctl_search_header *last)
{
	k->min_objectid = last->objectid;
	k->min_type = last->type;
	k->min_offset = last->offset + 1;
	if (k->min_offset == 0 && ++k->min_type > UINT8_MAX) {
		k->min_type = 0;
		k->min_objectid++;
	}
	return k->min_objectid <= k->max_objectid;
}

bool
hr_volume_count(int fd, uint64_t *ret_names, uint64_t *ret_bytes)
{
	HR_FREE struct btrfs_ioctl_search_args_v2 *s = calloc(1, sizeof(*s) + FOUND_MAX);
	struct btrfs_ioctl_search_header h = {0};
	struct stat st;
	const char *at;
	uint32_t i;

	*ret_names = *ret_bytes = 0;
	if (s == NULL || !is_single(fd, &st) || st.st_blksize <= 0)
		return false;
	/* tree 0 is that of fd */
	s->key = (struct btrfs_ioctl_search_key){.min_objectid = TOP_INODE + 1,
	    .max_objectid = BTRFS_LAST_FREE_OBJECTID,
	    .max_offset = UINT64_MAX,
	    .max_transid = UINT64_MAX,
	    .max_type = UINT8_MAX};
	do {
		s->buf_size = FOUND_MAX;
		s->key.nr_items = UINT32_MAX;
		if (ioctl(fd, BTRFS_IOC_TREE_SEARCH_V2, s) != 0)
			return false;
		at = (const char *)s->buf;
		for (i = 0; i < s->key.nr_items; i++) {
			memcpy(&h, at, sizeof(h));
			add_item(&h, at + sizeof(h), (uint64_t)st.st_blksize, ret_names, ret_bytes);
			at += sizeof(h) + h.len;
		}
	} while (s->key.nr_items > 0 && go_past(&s->key, &h));
	return true;
}

bool
hr_volume_remove(int dir, const char *name, const struct stat *st)
{
	struct btrfs_ioctl_vol_args v = {0};

	return S_ISDIR(st->st_mode) && st->st_ino == TOP_INODE &&
	       set_name(v.name, sizeof(v.name), name) &&
	       ioctl(dir, BTRFS_IOC_SNAP_DESTROY, &v) == 0;
}
