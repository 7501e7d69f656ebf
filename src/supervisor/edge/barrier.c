/* Delays nginx with a FIFO. Invariant: `path` is set while the FIFO exists. */
#include "config.h"

#include "supervisor/edge/barrier.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"

void
hr_barrier_init(struct hr_barrier *h)
{
	h->path = NULL;
	h->fd = -1;
}

int
hr_barrier_make(struct hr_barrier *h, const char *dir, struct hr_err *err)
{
	char *path;

	/* glob() gets the whole path */
	if (strpbrk(dir, "*?[\\") != NULL)
		return hr_err_set(err, HR_E_INVAL, "%s has * ? [ or \\, which nginx expands", dir);
	path = hr_path_join(dir, "hold");
	if (path == NULL)
		return hr_err_nomem(err);
	if ((unlink(path) != 0 && errno != ENOENT) || mkfifo(path, 0600) != 0) {
		(void)hr_err_sys(err, errno, "%s", path);
		free(path);
		return -1;
	}
	h->path = path;
	return 0;
}

/* Releases nginx; O_RDWR does not block, whether nginx has opened the FIFO already or not. */
int
hr_barrier_release(struct hr_barrier *h, struct hr_err *err)
{
	h->fd = open(h->path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
	return h->fd >= 0 ? 0 : hr_err_sys(err, errno, "%s", h->path);
}

void
hr_barrier_done(struct hr_barrier *h)
{
	if (h->path != NULL)
		(void)unlink(h->path);
	free(h->path);
	h->path = NULL;
	hr_fd_close(&h->fd);
}
