/* What opendir() and readdir() leave to their callers. */
#include "config.h"

#include "base/dir.h"

#include <errno.h>
#include <string.h>

#include "base/fd.h"

DIR *
hr_dir_take(int fd)
{
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;

	if (d == NULL)
		hr_fd_close(&fd);
	return d;
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
