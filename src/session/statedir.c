/* Manages the state directory. Invariant: while fd is open, only this account can create, rename or
 * remove entries of the directory. */
#include "config.h"

#include "session/statedir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"

void
hr_statedir_init(struct hr_statedir *d)
{
	memset(d, 0, sizeof(*d));
	d->fd = -1;
}

int
hr_statedir_pass(struct hr_statedir *d, struct hr_err *err)
{
	return fchmod(d->fd, 0711) == 0 ? 0 : hr_err_sys(err, errno, "mode");
}

/* Takes ownership first, since otherwise its owner could undo the other steps. */
static int
take_directory(struct hr_statedir *d, const char *path, struct hr_err *err)
{
	struct stat st;

	if (fstat(d->fd, &st) < 0)
		return hr_err_sys(err, errno, "%s", path);
	if (st.st_uid != geteuid()) {
		if (!d->give || st.st_uid != d->uid)
			return hr_err_set(
			    err, HR_E_INVAL, "%s: belongs to user %ld", path, (long)st.st_uid);
		if (fchown(d->fd, geteuid(), getegid()) < 0)
			return hr_err_sys(err, errno, "%s: owner", path);
	}
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return hr_err_set(err, HR_E_INVAL, "%s: others can write to it (mode %04o)", path,
		    (unsigned)(st.st_mode & 07777));
	if ((st.st_mode & S_IXOTH) == 0 && hr_statedir_pass(d, err) < 0)
		return hr_err_prefix(err, "%s", path);
	return 0;
}

int
hr_statedir_open(
    struct hr_statedir *d, const char *path, uid_t uid, gid_t gid, bool give, struct hr_err *err)
{
	d->uid = uid;
	d->gid = gid;
	d->give = give;
	d->fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (d->fd < 0)
		return hr_err_sys(err, errno, "%s", path);
	if (take_directory(d, path, err) < 0) {
		hr_statedir_close(d);
		return -1;
	}
	return 0;
}

void
hr_statedir_close(struct hr_statedir *d)
{
	hr_fd_close(&d->fd);
}

/* Sets owner and mode regardless of the umask; the mode comes last, since a change of owner may
 * clear bits. */
static int
share(const struct hr_statedir *d, int fd, bool give, mode_t mode, struct hr_err *err)
{
	if (give && fchown(fd, d->uid, d->gid) < 0)
		return hr_err_sys(err, errno, "owner");
	return fchmod(fd, mode) == 0 ? 0 : hr_err_sys(err, errno, "mode");
}

int
hr_statedir_fifo(
    struct hr_statedir *d, const char *name, enum hr_statedir_use use, struct hr_err *err)
{
	bool theirs = use == HR_STATEDIR_USER;
	struct stat st;
	int fd;

	hr_statedir_remove(d, name);
	if (mkfifoat(d->fd, name, 0600) < 0)
		return hr_err_sys(err, errno, "%s", name);
	fd = openat(d->fd, name, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return hr_err_sys(err, errno, "%s", name);
	if (fstat(fd, &st) < 0 || !S_ISFIFO(st.st_mode)) {
		(void)hr_err_set(err, HR_E_SYS, "%s: no FIFO", name);
		hr_fd_close(&fd);
	} else if (share(d, fd, d->give && theirs, theirs ? 0600 : 0622, err) < 0) {
		hr_err_prefix(err, "%s", name);
		hr_fd_close(&fd);
	}
	return fd;
}

bool
hr_statedir_is_fifo(const struct hr_statedir *d, const char *name, int fd, enum hr_statedir_use use)
{
	bool theirs = use == HR_STATEDIR_USER;
	struct stat named, held;

	return fstatat(d->fd, name, &named, AT_SYMLINK_NOFOLLOW) == 0 && fstat(fd, &held) == 0 &&
	       named.st_dev == held.st_dev && named.st_ino == held.st_ino &&
	       named.st_uid == (d->give && theirs ? d->uid : geteuid()) &&
	       (named.st_mode & 07777) == (theirs ? 0600 : 0622);
}

int
hr_statedir_put(struct hr_statedir *d, const char *name, const void *p, size_t len,
    enum hr_statedir_use use, struct hr_err *err)
{
	bool theirs = use == HR_STATEDIR_USER;
	HR_CLOSE int fd = -1;

	hr_statedir_remove(d, name);
	fd = openat(d->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return hr_err_sys(err, errno, "%s", name);
	if (hr_fd_write_full(fd, p, len, err) == 0 &&
	    share(d, fd, d->give && theirs, theirs ? 0400 : 0444, err) == 0)
		return 0;
	hr_statedir_remove(d, name);
	return hr_err_prefix(err, "%s", name);
}

int
hr_statedir_unnamed(struct hr_statedir *d, const char *name, struct hr_err *err)
{
	int fd;

	hr_statedir_remove(d, name);
	fd = openat(d->fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return hr_err_sys(err, errno, "%s", name);
	if (unlinkat(d->fd, name, 0) < 0) {
		(void)hr_err_sys(err, errno, "%s", name);
		hr_fd_close(&fd);
	}
	return fd;
}

void
hr_statedir_remove(struct hr_statedir *d, const char *name)
{
	if (d->fd >= 0 && unlinkat(d->fd, name, 0) < 0 && errno == EISDIR)
		(void)unlinkat(d->fd, name, AT_REMOVEDIR); /* otherwise O_EXCL reports it */
}

void
hr_statedir_sweep(struct hr_statedir *d, const char *const *prefixes, size_t n)
{
	const struct dirent *e;
	size_t i;
	DIR *dir = hr_dir_take(openat(d->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	if (dir == NULL)
		return;
	while ((e = hr_dir_next(dir)) != NULL)
		for (i = 0; i < n; i++)
			if (strncmp(e->d_name, prefixes[i], strlen(prefixes[i])) == 0) {
				hr_statedir_remove(d, e->d_name);
				break;
			}
	(void)closedir(dir);
}
