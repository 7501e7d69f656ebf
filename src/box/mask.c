/* Hides the files by which the box's root would reach the host's kernel. */
#include "config.h"

#include "box/mask.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "box/mount.h"

/* the files that a box neither reads nor writes: those of container engines, and some with which
 * root changes the host's kernel */
static const char *const hidden[] = {"/proc/acpi", "/proc/asound", "/proc/dynamic_debug",
    "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/lock_stat",
    "/proc/profile", "/proc/sched_debug", "/proc/scsi", "/proc/timer_list", "/proc/timer_stats",
    "/sys/devices/virtual/powercap", "/sys/firmware", "/sys/kernel/security", "/sys/kernel/debug",
    "/sys/kernel/tracing", "/sys/fs/cgroup"};
static const char *const read_only[] = {"/proc/bus", "/proc/driver", "/proc/fs", "/proc/irq",
    "/proc/mtrr", "/proc/sys", "/proc/sysrq-trigger"};

/* Hides a file, or a directory below a copy of the mount `*nothing`, of an empty directory, which
 * is made for the first one: kernels before 6.15 copy only what is attached. */
static int
hide(const char *path, int *nothing, struct hr_err *err)
{
	static const char *const options[] = {"mode", "0555", "size", "4096", NULL};
	const bool first = *nothing < 0;
	HR_CLOSE int fd = -1;
	struct stat st;
	int r = -1;

	if (lstat(path, &st) != 0)
		return 0; /* this kernel does not have the file */
	if (!S_ISDIR(st.st_mode)) {
		fd = box_mount_copy(AT_FDCWD, "/dev/null", 0);
		if (fd >= 0 && box_mount_flags(fd, 0, MOUNT_ATTR_RDONLY) == 0)
			r = box_mount_move(fd, path);
	} else if (first) {
		*nothing = box_mount_new("tmpfs", options,
		    MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
		r = *nothing >= 0 ? box_mount_move(*nothing, path) : -1;
	} else {
		fd = box_mount_copy(*nothing, "", 0);
		r = fd >= 0 ? box_mount_move(fd, path) : -1;
	}
	return r == 0 ? 0 : hr_err_sys(err, errno, "hide %s", path);
}

int
box_mask(struct hr_err *err)
{
	HR_CLOSE int nothing = -1;
	size_t i;

	for (i = 0; i < sizeof(hidden) / sizeof(*hidden); i++)
		if (hide(hidden[i], &nothing, err) < 0)
			return -1;
	for (i = 0; i < sizeof(read_only) / sizeof(*read_only); i++) {
		HR_CLOSE int fd = box_mount_copy(AT_FDCWD, read_only[i], 0);

		if (fd < 0 && errno == ENOENT)
			continue;
		if (fd < 0 || box_mount_flags(fd, 0, MOUNT_ATTR_RDONLY) < 0 ||
		    box_mount_move(fd, read_only[i]) < 0)
			return hr_err_sys(err, errno, "protect %s", read_only[i]);
	}
	return 0;
}
