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
#include "host/common/lock.h"
#include "host/common/statedir.h"

/* A killed holder's child has a copy of the lock until it executes its program. */
#define PATIENCE_MS 200

/* Takes the lock; `create` makes the file if it is missing. Returns 1 if the lock is held, 0 if the
 * file was removed meanwhile, or -1 with *err set. */
static int
try_lock(struct hr_namelock *l, bool create, const char *sid, struct hr_err *err)
{
	struct stat st;
	int sys;

	l->fd = open(l->path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0600);
	if (l->fd < 0)
		return hr_err_sys(err, errno, "open %s", l->path);
	sys = hr_lock_in_time(l->fd, LOCK_EX, PATIENCE_MS);
	if (fstat(l->fd, &st) != 0)
		return hr_err_sys(err, errno, "look at %s", l->path);
	/* a holder removes the file before it releases the lock */
	if (st.st_nlink == 0) {
		hr_fd_close(&l->fd);
		return 0;
	}
	if (sys == EWOULDBLOCK)
		return hr_err_set(err, HR_E_RUNTIME,
		    "another process is starting or ending sandbox \"%s\": try again when it has "
		    "finished",
		    sid);
	return sys == 0 ? 1 : hr_err_sys(err, sys, "lock %s", l->path);
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
