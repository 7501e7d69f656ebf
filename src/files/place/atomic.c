/* Resolves a path to the file that hr_spool replaces. */
#include "config.h"

#include "files/place/atomic.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "files/place/reach.h"

#define LINKS_MAX 40 /* the kernel has the same limit */

static void
nothing_open(struct hr_atomic *a)
{
	memset(a, 0, sizeof(*a));
	hr_spool_init(&a->spool);
	a->dir = a->old = -1;
}

void
hr_atomic_abort(struct hr_atomic *a)
{
	hr_spool_close(&a->spool);
	hr_fd_close(&a->old);
	hr_fd_close(&a->dir);
	free(a->name);
	nothing_open(a);
}

/* ---- the place of the file ---- */

/* Returns the directory part, or "."; *ret_name points into path. The caller frees the result. */
static char *
split(const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');

	*ret_name = slash != NULL ? slash + 1 : path;
	if (slash == NULL)
		return strdup(".");
	return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* Follows one symbolic link. Returns 1 with *path replaced; 0: path is no link; -1. */
static int
follow(char **path, struct hr_err *err)
{
	char target[PATH_MAX], *next;
	HR_FREE char *dir = NULL;
	const char *name;
	ssize_t n = readlink(*path, target, sizeof(target) - 1);

	/* the path is no link, or a dangling one; after any other failure a link must not be
	 * replaced */
	if (n < 0 && errno != EINVAL && errno != ENOENT && errno != ENOTDIR)
		return hr_err_sys(err, errno, "%s", *path);
	if (n < 0)
		return 0;
	target[n] = '\0';
	dir = split(*path, &name);
	next = dir != NULL ? hr_path_join(dir, target) : NULL;
	if (next == NULL)
		return hr_err_nomem(err);
	free(*path);
	*path = next;
	return 1;
}

/* Opens the directory of the file that path leads to, and stores the file's name in it. */
static int
locate(struct hr_atomic *a, const char *path, struct hr_err *err)
{
	HR_FREE char *at = strdup(path);
	HR_FREE char *dir = NULL;
	const char *name;
	int r = at == NULL ? hr_err_nomem(err) : 1, links = 0;

	while (r == 1 && links++ <= LINKS_MAX)
		r = follow(&at, err);
	if (r == 1)
		r = hr_err_sys(err, ELOOP, "%s", path);
	if (r < 0)
		return -1;
	dir = split(at, &name);
	a->name = strdup(name);
	if (dir == NULL || a->name == NULL) {
		r = hr_err_nomem(err);
	} else {
		a->dir = hr_reach_open(AT_FDCWD, dir, O_PATH | O_DIRECTORY);
		if (a->dir < 0)
			r = hr_err_sys(err, errno, "%s", path);
	}
	return r;
}

static int
open_old(struct hr_atomic *a, const char *path, struct hr_err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == ENOENT ? 0 : hr_err_sys(err, errno, "%s", path);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return hr_err_set(err, HR_E_UNSUPPORTED, "%s is not a regular file", path);
	/* a file without write permission must not be replaced, whatever its directory allows */
	a->old = hr_reach_open(AT_FDCWD, path, O_WRONLY | O_NONBLOCK);
	if (a->old < 0 || fstat(a->old, &st) < 0)
		return hr_err_sys(err, errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return hr_err_set(err, HR_E_UNSUPPORTED, "%s is not a regular file", path);
	return 0;
}

int
hr_atomic_open(struct hr_atomic *a, const char *path, mode_t mode, struct hr_err *err)
{
	int sys;

	nothing_open(a);
	if (open_old(a, path, err) < 0 || locate(a, path, err) < 0) {
		hr_atomic_abort(a);
		return -1;
	}
	if (hr_spool_open_at(&a->spool, a->dir, a->old >= 0 ? 0600 : mode, a->old >= 0) == 0)
		return 0;
	sys = errno;
	hr_atomic_abort(a);
	return hr_err_sys(err, sys, "%s", path);
}

int
hr_atomic_commit(struct hr_atomic *a, struct hr_err *err)
{
	int r;

	hr_commit_reached(a->commit);
	r = hr_spool_put(&a->spool, a->dir, a->name, a->old);
	if (r < 0)
		(void)hr_err_sys(err, errno, "%s", a->name);
	hr_atomic_abort(a);
	return r;
}

/* ---- bytes in memory ---- */

static int
write_special(
    const char *path, const void *p, size_t len, const struct hr_commit *commit, struct hr_err *err)
{
	HR_CLOSE int fd = hr_reach_open(AT_FDCWD, path, O_WRONLY | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return hr_err_sys(err, errno, "%s", path);
	hr_commit_reached(commit);
	return hr_fd_write_full(fd, p, len, err);
}

int
hr_atomic_write_telling(const char *path, const void *p, size_t len, mode_t mode,
    const struct hr_commit *commit, struct hr_err *err)
{
	struct hr_atomic a;
	struct hr_err why = {.code = HR_OK};

	if (hr_atomic_open(&a, path, mode, &why) < 0) {
		if (why.code == HR_E_UNSUPPORTED)
			return write_special(path, p, len, commit, err);
		return hr_err_pass(err, &why);
	}
	if (hr_fd_write_full(a.spool.fd, p, len, err) < 0) {
		hr_atomic_abort(&a);
		return -1;
	}
	a.commit = commit;
	return hr_atomic_commit(&a, err);
}

int
hr_atomic_write(const char *path, const void *p, size_t len, mode_t mode, struct hr_err *err)
{
	return hr_atomic_write_telling(path, p, len, mode, NULL, err);
}
