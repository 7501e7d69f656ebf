/* Hides the files by which the box's root would reach the host's kernel. */
#include "config.h"

#include "box/mask.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/random.h"
#include "box/mount.h"

/* the files that a box neither reads nor writes: those of container engines, some with which root
 * changes the host's kernel, and those that list the memory of the whole machine for root */
static const char *const hidden[] = {"/proc/acpi", "/proc/asound", "/proc/dynamic_debug",
    "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/kpagecgroup", "/proc/kpagecount",
    "/proc/kpageflags", "/proc/latency_stats", "/proc/lock_stat", "/proc/pagetypeinfo",
    "/proc/profile", "/proc/sched_debug", "/proc/scsi", "/proc/slabinfo", "/proc/timer_list",
    "/proc/timer_stats", "/proc/vmallocinfo", "/sys/devices/virtual/powercap", "/sys/firmware",
    "/sys/kernel/security", "/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/cgroup"};
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

/* Puts a random boot ID in place of the host's, so that a box which starts again has another one.
 * A file of the box's /dev holds it, which has no name any more when the box starts. */
static int
mask_boot_id(struct hr_err *err)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id", made[] = "/dev/boot_id";
	char id[HR_UUID_TEXT + 1];
	HR_CLOSE int fd = -1, mount = -1;
	bool put;

	if (access(path, F_OK) != 0)
		return 0; /* this kernel does not have it */
	if (hr_random_uuid(id, err) < 0)
		return -1;
	id[HR_UUID_TEXT - 1] = '\n';
	id[HR_UUID_TEXT] = '\0';
	fd = open(made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (fd < 0)
		return hr_err_sys(err, errno, "make %s", made);
	put = hr_fd_write_full(fd, id, HR_UUID_TEXT, err) == 0;
	mount = put ? box_mount_copy(AT_FDCWD, made, 0) : -1;
	if (put && (mount < 0 || box_mount_flags(mount, 0, MOUNT_ATTR_RDONLY) < 0 ||
		       box_mount_move(mount, path) < 0))
		put = hr_err_sys(err, errno, "replace %s", path) == 0;
	(void)unlink(made); /* later than the move, which refuses a file without a name */
	return put ? 0 : -1;
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
	return mask_boot_id(err);
}
