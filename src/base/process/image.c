/* Copies programs into memory files. */
#include "config.h"

#include "base/process/image.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"

#define ABOVE 64 /* lowest descriptor, clear of those of a child */
#define IMAGE_MAX (64 << 20)
#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U
#endif

/* Returns the end of the last segment: debugging symbols are not loaded. Returns -1 if the file is
 * not a program. */
static off_t
loaded_size(int fd)
{
	ElfW(Ehdr) head;
	ElfW(Phdr) part;
	off_t end = -1;
	unsigned i;

	if (pread(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_phentsize != sizeof(part))
		return -1;
	for (i = 0; i < head.e_phnum; i++) {
		if (pread(fd, &part, sizeof(part), (off_t)(head.e_phoff + i * sizeof(part))) !=
		    (ssize_t)sizeof(part))
			return -1;
		if (part.p_type == PT_LOAD && (off_t)(part.p_offset + part.p_filesz) > end)
			end = (off_t)(part.p_offset + part.p_filesz);
	}
	return end <= IMAGE_MAX ? end : -1;
}

static int
copy(int from, int to, off_t size, mode_t mode)
{
	off_t at = 0;
	ssize_t n;

	while (at < size) {
		n = sendfile(to, from, &at, (size_t)(size - at));
		if (n == 0)
			errno = EIO;
		if (n == 0 || (n < 0 && errno != EINTR))
			return -1;
	}
	return fcntl(to, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0
		   ? -1
		   : fchmod(to, mode);
}

int
hr_image_open(const char *path, const char *name, mode_t mode, struct hr_err *err)
{
	int mem, high = -1;
	HR_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	off_t size = fd >= 0 ? loaded_size(fd) : -1;

	if (size < 0)
		return hr_err_set(err, HR_E_UNSUPPORTED, "%s cannot be copied", path);
	mem = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (mem < 0 && errno == EINVAL) /* kernels before 6.3 do not know the flag */
		mem = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (mem >= 0 && copy(fd, mem, size, mode) == 0)
		high = fcntl(mem, F_DUPFD_CLOEXEC, ABOVE);
	if (high < 0)
		(void)hr_err_sys(err, errno, "a copy of %s", path);
	hr_fd_close(&mem);
	return high;
}
