/* Reads files of unknown size to their end. */
#include "config.h"

#include "files/place/whole.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/fd.h"

#define SYSFS 0x62656572
#define CGROUP2 0x63677270
#define PIECE (64u << 10) /* some kernel files return all in one read, or nothing */

bool
hr_whole_is_kernels(int fd)
{
	struct statfs st;

	if (fstatfs(fd, &st) < 0)
		return true;
	return st.f_type == PROC_SUPER_MAGIC || st.f_type == SYSFS || st.f_type == CGROUP2 ||
	       st.f_type == CGROUP_SUPER_MAGIC || st.f_type == DEBUGFS_MAGIC ||
	       st.f_type == TRACEFS_MAGIC;
}

/* Copies to the end. A file without data for now counts as ended. Returns 0, or -1 with errno. */
static int
copy(int from, int to, off_t *ret_size)
{
	char piece[PIECE];
	ssize_t n;

	*ret_size = 0;
	while ((n = hr_fd_read(from, piece, sizeof(piece))) > 0) {
		*ret_size += n;
		if (*ret_size > (off_t)HR_WHOLE_MAX) {
			errno = EFBIG;
			return -1;
		}
		if (hr_fd_write_full(to, piece, (size_t)n, NULL) < 0)
			return -1;
	}
	return n == 0 || errno == EAGAIN ? 0 : -1;
}

int
hr_whole_take(int *fd, struct stat *st)
{
	off_t size;
	int memory;

	if (!S_ISREG(st->st_mode) || (st->st_size > 0 && !hr_whole_is_kernels(*fd)))
		return 0;
	memory = memfd_create("whole", MFD_CLOEXEC);
	if (memory < 0)
		return -1;
	if (copy(*fd, memory, &size) < 0 || lseek(memory, 0, SEEK_SET) < 0) {
		hr_fd_close(&memory);
		return -1;
	}
	if (size == 0 && st->st_size == 0) { /* the file is empty */
		hr_fd_close(&memory);
		return 0;
	}
	hr_fd_close(fd);
	*fd = memory;
	st->st_size = size;
	return 0;
}
