/* Makes mounts that are not attached anywhere yet, by system calls that glibc 2.36 lacks. */
#include "config.h"

#include "box/mount.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

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
