/* Replacing files. Invariant: until the one rename() or the copy of hr_atomic_commit() nothing that
 * has a name in the user's directories was changed. */
#include "config.h"

#include "files/place/atomic.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/scrap.h"
#include "files/place/reach.h"

#define LINKS_MAX 40 /* the kernel's */
#define TRIES 100
#define XATTR_NAMES_MAX 65536 /* the kernel's */
#define COPY_SIZE (64u << 10)

static void
nothing_open(struct hr_atomic *a)
{
	memset(a, 0, sizeof(*a));
	a->fd = a->dir = a->old = -1;
}

void
hr_atomic_abort(struct hr_atomic *a)
{
	if (a->temp[0] != '\0') {
		(void)unlinkat(a->dir, a->temp, 0); /* nobody could do more about it */
		hr_scrap_forget();
	}
	hr_fd_close(&a->fd);
	hr_fd_close(&a->old);
	hr_fd_close(&a->dir);
	free(a->name);
	nothing_open(a);
}

static void
temp_name(struct hr_atomic *a)
{
	unsigned long long r;

	if (getrandom(&r, sizeof(r), 0) != (ssize_t)sizeof(r))
		r = (unsigned long long)getpid(); /* the names are tried until one is free */
	(void)snprintf(a->temp, sizeof(a->temp), HR_SCRAP_PREFIX "%016llx", r);
}

/* ---- where the file is ---- */

/* The directory part, "." if there is none; *ret_name points into path. The caller frees. */
static char *
split(const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');

	*ret_name = slash != NULL ? slash + 1 : path;
	if (slash == NULL)
		return strdup(".");
	return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* One symbolic link further: 1 and *path replaced; 0: path is none; -1. */
static int
follow(char **path, struct hr_err *err)
{
	char target[PATH_MAX], *dir, *next;
	const char *name;
	ssize_t n = readlink(*path, target, sizeof(target) - 1);

	/* a path that is none, or leads nowhere; of another failure a link must not be replaced */
	if (n < 0 && errno != EINVAL && errno != ENOENT && errno != ENOTDIR)
		return hr_err_sys(err, errno, "%s", *path);
	if (n < 0)
		return 0;
	target[n] = '\0';
	dir = split(*path, &name);
	next = dir != NULL ? hr_path_join(dir, target) : NULL;
	free(dir);
	if (next == NULL)
		return hr_err_nomem(err);
	free(*path);
	*path = next;
	return 1;
}

/* Opens the directory of what path leads to, and notes its name there. */
static int
locate(struct hr_atomic *a, const char *path, struct hr_err *err)
{
	char *at = strdup(path), *dir;
	const char *name;
	int r = at == NULL ? hr_err_nomem(err) : 1, links = 0;

	while (r == 1 && links++ <= LINKS_MAX)
		r = follow(&at, err);
	if (r == 1)
		r = hr_err_sys(err, ELOOP, "%s", path);
	if (r < 0) {
		free(at);
		return -1;
	}
	dir = split(at, &name);
	a->name = strdup(name);
	if (dir == NULL || a->name == NULL) {
		r = hr_err_nomem(err);
	} else {
		a->dir = hr_reach_open(AT_FDCWD, dir, O_PATH | O_DIRECTORY);
		if (a->dir < 0)
			r = hr_err_sys(err, errno, "%s", path);
	}
	free(dir);
	free(at);
	return r;
}

static int
open_old(struct hr_atomic *a, const char *path, struct hr_err *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == ENOENT ? 0 : hr_err_sys(err, errno, "%s", path);
	if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return hr_err_set(err, HR_E_UNSUPPORTED, "%s is no regular file", path);
	/* what may not be written may not be replaced either, whatever its directory allows */
	a->old = hr_reach_open(AT_FDCWD, path, O_WRONLY | O_NONBLOCK);
	if (a->old < 0 || fstat(a->old, &a->st) < 0)
		return hr_err_sys(err, errno, "%s", path);
	if (!S_ISREG(a->st.st_mode))
		return hr_err_set(err, HR_E_UNSUPPORTED, "%s is no regular file", path);
	return 0;
}

/* ---- the file beside it ---- */

static int
open_temp(struct hr_atomic *a, mode_t mode)
{
	int tries;

	a->fd = openat(a->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	if (a->fd >= 0)
		return 0;
	/* the file system cannot, or the kernel (then it is a directory, open for writing) */
	if (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT)
		return -1;
	for (tries = 0; tries < TRIES; tries++) {
		temp_name(a);
		hr_scrap_note(a->dir, a->temp);
		a->fd = openat(a->dir, a->temp, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode);
		if (a->fd >= 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	a->temp[0] = '\0';
	hr_scrap_forget();
	return -1;
}

/* For a file whose directory takes none. */
static int
open_elsewhere(struct hr_atomic *a)
{
	const char *dir = getenv("TMPDIR");
	char name[PATH_MAX];
	int n = snprintf(
	    name, sizeof(name), "%s/handrail-XXXXXX", dir != NULL && dir[0] == '/' ? dir : "/tmp");

	if (n < 0 || (size_t)n >= sizeof(name)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	a->fd = mkostemp(name, O_CLOEXEC);
	if (a->fd < 0)
		return -1;
	(void)unlink(name);
	a->elsewhere = true;
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
	if (open_temp(a, a->old >= 0 ? 0600 : mode) == 0)
		return 0;
	sys = errno;
	if (a->old >= 0 && open_elsewhere(a) == 0)
		return 0;
	hr_atomic_abort(a);
	return hr_err_sys(err, sys, "%s", path);
}

/* ---- taking its place ---- */

/* Copies one attribute; true also where there is nothing to copy. */
static bool
keep_xattr(int from, int to, const char *name)
{
	char value[4096], *big = NULL;
	ssize_t n;
	bool ok;

	/* of programs: writing to a file takes it away as well */
	if (strcmp(name, "security.capability") == 0)
		return true;
	n = fgetxattr(from, name, value, sizeof(value));
	if (n < 0 && errno == ERANGE) {
		big = malloc(XATTR_SIZE_MAX);
		n = big != NULL ? fgetxattr(from, name, big, XATTR_SIZE_MAX) : -1;
	}
	ok = n >= 0 && fsetxattr(to, name, big != NULL ? big : value, (size_t)n, 0) == 0;
	free(big);
	return ok;
}

static bool
keep_xattrs(int from, int to)
{
	ssize_t n = flistxattr(from, NULL, 0), at;
	char *names;
	bool ok = true;

	if (n <= 0)
		return n == 0 || errno == ENOTSUP;
	names = malloc(XATTR_NAMES_MAX);
	n = names != NULL ? flistxattr(from, names, XATTR_NAMES_MAX) : -1;
	for (at = 0; ok && at < n; at += (ssize_t)strlen(names + at) + 1)
		ok = keep_xattr(from, to, names + at);
	free(names);
	return ok && n >= 0;
}

/* Whether the new file may pass for the old one. */
static bool
keep_metadata(const struct hr_atomic *a)
{
	struct stat st;

	if (fstat(a->fd, &st) < 0)
		return false;
	if ((st.st_uid != a->st.st_uid || st.st_gid != a->st.st_gid) &&
	    fchown(a->fd, a->st.st_uid, a->st.st_gid) < 0)
		return false;
	/* behind fchown(), which clears bits of it; an access list's mask comes with its attribute
	 */
	return fchmod(a->fd, a->st.st_mode & 07777) == 0 && keep_xattrs(a->old, a->fd);
}

static int
link_fd(const struct hr_atomic *a, const char *name)
{
	char self[64];

	/* the first way needs a privilege, the second needs /proc */
	if (linkat(a->fd, "", a->dir, name, AT_EMPTY_PATH) == 0)
		return 0;
	if (errno != ENOENT && errno != EPERM && errno != EACCES)
		return -1;
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", a->fd);
	return linkat(AT_FDCWD, self, a->dir, name, AT_SYMLINK_FOLLOW);
}

/* Gives the nameless file one: 1: its own, since the place is free; 0: a temporary one. */
static int
take_name(struct hr_atomic *a)
{
	int tries;

	if (a->old < 0) {
		if (link_fd(a, a->name) == 0)
			return 1;
		if (errno != EEXIST)
			return -1;
	}
	for (tries = 0; tries < TRIES; tries++) {
		temp_name(a);
		hr_scrap_note(a->dir, a->temp);
		if (link_fd(a, a->temp) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	a->temp[0] = '\0';
	hr_scrap_forget();
	return -1;
}

/* 0, or -1 with errno. */
static int
replace(struct hr_atomic *a)
{
	if (a->temp[0] == '\0') {
		switch (take_name(a)) {
		case 0: break;
		case 1: return 0;
		default: return -1;
		}
	}
	if (renameat(a->dir, a->temp, a->dir, a->name) < 0)
		return -1;
	a->temp[0] = '\0';
	hr_scrap_forget();
	return 0;
}

/* All of `from` into `to`, both from their beginnings. 0, or -1 with errno. */
static int
copy_bytes(int from, int to, off_t len)
{
	char chunk[COPY_SIZE];
	off_t at = 0;
	ssize_t n, w, done;

	while (at < len) {
		n = pread(from, chunk, sizeof(chunk), at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		for (done = 0; done < n; done += w) {
			w = pwrite(to, chunk + done, (size_t)(n - done), at + done);
			if (w < 0 && errno == EINTR)
				w = 0;
			if (w < 0)
				return -1;
		}
		at += n;
	}
	return 0;
}

static int
copy_into_old(struct hr_atomic *a)
{
	struct stat st;

	if (fstat(a->fd, &st) < 0)
		return -1;
	/* holes of the old file too: nothing below may find the disk full */
	if (st.st_size > 0 && fallocate(a->old, FALLOC_FL_KEEP_SIZE, 0, st.st_size) < 0 &&
	    errno != EOPNOTSUPP && errno != ENOSYS)
		return -1;
	if (copy_bytes(a->fd, a->old, st.st_size) < 0)
		return -1;
	return ftruncate(a->old, st.st_size);
}

int
hr_atomic_commit(struct hr_atomic *a, struct hr_err *err)
{
	bool same = a->old >= 0 && (a->st.st_nlink != 1 || a->elsewhere || !keep_metadata(a));
	int r = -1;

	hr_moment_reach(a->moment);
	if (!same)
		r = replace(a);
	if (r < 0 && a->old >= 0)
		r = copy_into_old(a);
	if (r < 0)
		r = hr_err_sys(err, errno, "%s", a->name);
	hr_atomic_abort(a);
	return r;
}

/* ---- bytes in memory ---- */

static int
write_special(
    const char *path, const void *p, size_t len, const struct hr_moment *moment, struct hr_err *err)
{
	int fd = hr_reach_open(AT_FDCWD, path, O_WRONLY | O_NONBLOCK | O_NOCTTY), r;

	if (fd < 0)
		return hr_err_sys(err, errno, "%s", path);
	hr_moment_reach(moment);
	r = hr_fd_write_full(fd, p, len, err);
	hr_fd_close(&fd);
	return r;
}

int
hr_atomic_write_telling(const char *path, const void *p, size_t len, mode_t mode,
    const struct hr_moment *moment, struct hr_err *err)
{
	struct hr_atomic a;
	struct hr_err why = {.code = HR_OK};

	if (hr_atomic_open(&a, path, mode, &why) < 0) {
		if (why.code == HR_E_UNSUPPORTED)
			return write_special(path, p, len, moment, err);
		if (err != NULL)
			*err = why;
		return -1;
	}
	if (hr_fd_write_full(a.fd, p, len, err) < 0) {
		hr_atomic_abort(&a);
		return -1;
	}
	a.moment = moment;
	return hr_atomic_commit(&a, err);
}

int
hr_atomic_write(const char *path, const void *p, size_t len, mode_t mode, struct hr_err *err)
{
	return hr_atomic_write_telling(path, p, len, mode, NULL, err);
}
