/* Makes mounts that are not attached anywhere yet, by system calls that glibc 2.36 lacks. */
#include "config.h"

#include "box/mount.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"

int
box_mount_copy(int at, const char *path, unsigned flags)
{
	const unsigned all = flags | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH;

	return at == -1 ? -1 : (int)syscall(SYS_open_tree, at, path, all);
}

int
box_mount_move(int from, const char *to)
{
	return (int)syscall(SYS_move_mount, from, "", AT_FDCWD, to, MOVE_MOUNT_F_EMPTY_PATH);
}

int
box_mount_flags(int fd, unsigned flags, uint64_t attributes)
{
	struct mount_attr a = {.attr_set = attributes};

	return (int)syscall(SYS_mount_setattr, fd, "", flags | AT_EMPTY_PATH, &a, sizeof(a));
}

int
box_mount_new(const char *type, const char *const *options, unsigned attributes)
{
	HR_CLOSE int fs = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC);

	if (fs < 0)
		return -1;
	for (; *options != NULL; options += 2)
		if (syscall(SYS_fsconfig, fs,
			options[1] != NULL ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, options[0],
			options[1], 0) < 0)
			return -1;
	if (syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, attributes);
}

int
box_mount_path(const char *path, uint64_t flags)
{
	const struct open_how how = {.flags = flags | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};

	return (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
}

int
box_mount_bound(const char *path, bool writable)
{
	const uint64_t flags = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	HR_CLOSE int at = box_mount_path(path, O_PATH);
	int fd = box_mount_copy(at, "", AT_RECURSIVE);

	if (fd >= 0 && box_mount_flags(fd, AT_RECURSIVE,
			   flags | (writable ? 0 : (uint64_t)MOUNT_ATTR_RDONLY)) < 0)
		hr_fd_close(&fd);
	return fd;
}

int
box_mount_within(int top, const char *path)
{
	const struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
	    .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH | RESOLVE_NO_XDEV};

	return (int)syscall(SYS_openat2, top, path, &how, sizeof(how));
}

/* ---- places in the box ---- */

static int
not_made(const char *path, struct hr_err *err)
{
	return errno == EACCES ? hr_err_set(err, HR_E_PERMISSION,
				     "make /%s in the box: the directory belongs to the "
				     "host's root; give the "
				     "mount another target, or its path without links",
				     path)
			       : hr_err_sys(err, errno, "make /%s in the box", path);
}

/* Makes the place of a mount in the new root, whose links lead nowhere else. */
static int
make_place(const char *target, bool is_file, struct hr_err *err)
{
	char path[PATH_MAX], *at;
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s", target) >= sizeof(path))
		return hr_err_set(err, HR_E_INVAL, "a target is too long: %.40s...", target);
	for (at = strchr(path, '/'); at != NULL; at = strchr(at + 1, '/')) {
		*at = '\0';
		if (mkdir(path, 0755) != 0 && errno != EEXIST)
			return not_made(path, err);
		*at = '/';
	}
	if (!is_file)
		return mkdir(path, 0755) == 0 || errno == EEXIST ? 0 : not_made(path, err);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0 && errno != EEXIST)
		return not_made(path, err);
	hr_fd_close(&fd);
	return 0;
}

int
box_mount_put(int fd, const char *target, bool is_file, struct hr_err *err)
{
	/* most places are there */
	if (box_mount_move(fd, target) == 0)
		return 0;
	if (errno == ENOENT && make_place(target, is_file, err) < 0)
		return -1;
	return box_mount_move(fd, target) == 0
		   ? 0
		   : hr_err_sys(err, errno, "mount /%s in the box", target);
}
