/* Reads directories with the error handling that opendir() and readdir() leave to callers. */
#include "config.h"

#include "base/dir.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fd.h"

DIR *
hr_dir_take(int fd)
{
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (d == NULL)
		hr_fd_close(&fd);
	return d;
}

void
hr_dir_close(DIR **d)
{
	if (*d != NULL)
		(void)closedir(*d);
}

struct dirent *
hr_dir_next(DIR *d)
{
	struct dirent *e;

	do {
		errno = 0;
		e = readdir(d);
	} while (e != NULL && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0));
	return e;
}

bool
hr_dir_is_directory(int dir, const struct dirent *e)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN)
		return e->d_type == DT_DIR;
	return fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}
