/* Manages a lock file, removed at the end. */
#include "config.h"

#include "host/records/namelock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/err.h"
#include "host/common/statedir.h"

/* Takes the lock; `create` makes the file if it is missing. Returns 1 if the lock is held, 0 if the
 * file was removed meanwhile, or -1 with *err set. */
static int
try_lock(struct hr_namelock *l, bool create, const char *sid, struct hr_err *err)
{
	struct stat st;

	l->fd = open(l->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0600);
	if (l->fd < 0)
		return hr_err_sys(err, errno, "open %s", l->path);
	if (flock(l->fd, LOCK_EX | LOCK_NB) != 0)
		return errno == EWOULDBLOCK ? hr_err_set(err, HR_E_RUNTIME,
						  "sandbox \"%s\" is being started, or ended, "
						  "by another process",
						  sid)
					    : hr_err_sys(err, errno, "lock %s", l->path);
	if (fstat(l->fd, &st) != 0)
		return hr_err_sys(err, errno, "look at %s", l->path);
	if (st.st_nlink > 0)
		return 1;
	hr_fd_close(&l->fd);
	return 0;
}

static int
acquire(
    struct hr_namelock *l, const char *state_dir, const char *sid, bool create, struct hr_err *err)
{
	int r;

	l->fd = -1;
	if (asprintf(&l->path, "%s/.%s.lock", state_dir, sid) < 0) {
		l->path = NULL;
		return hr_err_nomem(err);
	}
	while ((r = try_lock(l, create, sid, err)) == 0)
		;
	if (r > 0)
		return 0;
	hr_fd_close(&l->fd);
	free(l->path);
	l->path = NULL;
	return -1;
}

int
hr_namelock_take(struct hr_namelock *l, const char *state_dir, const char *sid, struct hr_err *err)
{
	*l = (struct hr_namelock){.fd = -1};
	if (hr_state_directory(state_dir, true, err) < 0)
		return -1;
	return acquire(l, state_dir, sid, true, err);
}

void
hr_namelock_drop(struct hr_namelock *l)
{
	/* removes the file while the lock is held: a process that has it open sees that it is gone,
	 * and makes another */
	if (l->fd >= 0)
		(void)unlink(l->path);
	hr_fd_close(&l->fd);
	free(l->path);
	l->path = NULL;
}

bool
hr_namelock_take_left(struct hr_namelock *l, const char *state_dir, const char *sid)
{
	return acquire(l, state_dir, sid, false, NULL) == 0;
}
