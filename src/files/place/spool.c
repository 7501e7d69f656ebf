/* Makes files without a name (O_TMPFILE), names them, and has a fallback for file systems without
 * them. Invariant: nothing with a name in the user's directories changes before the one rename() or
 * the copy of hr_spool_put(). */
#include "config.h"

#include "files/place/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/random.h"
#include "files/place/oserror.h"
#include "files/place/reach.h"

#define XATTR_NAMES_MAX 65536 /* the kernel has the same limit */
#define COPY_MAX (128u << 20) /* maximum bytes per call */
#define RACES 100             /* maximum attempts at a free name */
#define COPY_CHUNK (64u << 10)
#define ACCESS_LIST "system.posix_acl_access"

void
hr_spool_init(struct hr_spool *s)
{
	s->fd = s->dir = -1;
	s->name[0] = '\0';
}

/* Closes the spool without updating hr_tempfiles. Keeps errno. */
static void
drop(struct hr_spool *s)
{
	int sys = errno;

	if (s->name[0] != '\0')
		(void)unlinkat(s->dir, s->name, 0); /* nothing can be done about a failure */
	hr_fd_close(&s->dir);
	hr_fd_close(&s->fd);
	s->name[0] = '\0';
	errno = sys;
}

void
hr_spool_close(struct hr_spool *s)
{
	drop(s);
	hr_tempfiles_forget();
}

int
hr_spool_name(char name[HR_SPOOL_NAME], const char *kind)
{
	char random[17];

	if (hr_random_hex(random, sizeof(random) - 1, NULL) < 0) {
		errno = EIO;
		return -1;
	}
	(void)snprintf(name, HR_SPOOL_NAME, HR_SPOOL_PREFIX "%s-%s", kind, random);
	return 0;
}

/* ---- new bytes ---- */

/* Gives the spool's file a name in dir, or makes a new file with one. */
static int
take_name(struct hr_spool *s, int dir, mode_t mode)
{
	char name[HR_SPOOL_NAME];
	int at = fcntl(dir, F_DUPFD_CLOEXEC, 0), r = -1;

	if (at >= 0 && hr_spool_name(name, "new") == 0) {
		hr_tempfiles_note(dir, name);
		if (s->fd >= 0)
			r = hr_path_link(s->fd, dir, name);
		else
			r = s->fd = openat(
			    dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
	}
	if (r < 0) {
		hr_fd_close(&at);
		return -1;
	}
	s->dir = at;
	memcpy(s->name, name, sizeof(name));
	return 0;
}

static int
open_in(struct hr_spool *s, int dir, mode_t mode)
{
	s->fd = hr_path_unnamed_at(dir, ".", mode);
	if (s->fd >= 0)
		return 0;
	return errno == EOPNOTSUPP ? take_name(s, dir, mode) : -1;
}

/* Returns true for the errors of a directory in which this process cannot create files. */
static bool
is_closed(int sys)
{
	return sys == EACCES || sys == EPERM || sys == EROFS;
}

int
hr_spool_open_at(struct hr_spool *s, int dir, mode_t mode, bool over)
{
	const char *elsewhere;
	int r = open_in(s, dir, mode), sys = errno, tmp;

	if (r == 0 || !over || !is_closed(sys))
		return r;
	elsewhere = getenv("TMPDIR");
	tmp = open(elsewhere != NULL && elsewhere[0] == '/' ? elsewhere : "/tmp",
	    O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (tmp >= 0)
		r = open_in(s, tmp, 0600);
	hr_fd_close(&tmp);
	errno = sys;
	return r;
}

int
hr_spool_open(struct hr_spool *s, const char *directory)
{
	HR_FREE char *path = strdup(directory);
	size_t n;
	HR_CLOSE int dir = -1;

	if (path == NULL)
		return -1;
	for (n = strlen(path);;) {
		dir = hr_reach_open_as(AT_FDCWD, n > 0 ? path : "/", O_PATH | O_DIRECTORY, true);
		if (dir >= 0 || n == 0 || (errno != ENOENT && errno != ENOTDIR))
			break;
		while (n > 0 && path[n - 1] == '/')
			n--;
		while (n > 0 && path[n - 1] != '/')
			n--;
		path[n] = '\0';
	}
	if (dir < 0)
		return -1;
	return hr_spool_open_at(s, dir, 0666, true);
}

int
hr_spool_write(struct hr_spool *s, const char *p, size_t len)
{
	return hr_fd_write_full(s->fd, p, len, NULL);
}

/* Copies all bytes of `from` to `to` at its offset. Returns 0, or -1 with errno. */
static int
copy_bytes(int from, int to)
{
	char chunk[COPY_CHUNK];
	ssize_t n;

	if (lseek(from, 0, SEEK_SET) < 0)
		return -1;
	do
		n = copy_file_range(from, NULL, to, NULL, COPY_MAX, 0);
	while (n > 0 || (n < 0 && errno == EINTR));
	if (n == 0)
		return 0;
	/* the call is not supported between these file systems, or at all; a full disk fails again
	 * below */
	while ((n = hr_fd_read(from, chunk, sizeof(chunk))) > 0)
		if (hr_fd_write_full(to, chunk, (size_t)n, NULL) < 0)
			return -1;
	return n < 0 ? -1 : 0;
}

/* ---- attributes of the old file ---- */

/* Copies one attribute. Returns true as well if there is nothing to copy. */
static bool
keep_xattr(int from, int to, const char *name)
{
	char value[4096];
	HR_FREE char *big = NULL;
	ssize_t n;

	/* these are file capabilities: a write to the old file would remove them as well */
	if (strcmp(name, "security.capability") == 0)
		return true;
	n = fgetxattr(from, name, value, sizeof(value));
	if (n < 0 && errno == ERANGE) {
		big = malloc(XATTR_SIZE_MAX);
		n = big != NULL ? fgetxattr(from, name, big, XATTR_SIZE_MAX) : -1;
	}
	return n >= 0 && fsetxattr(to, name, big != NULL ? big : value, (size_t)n, 0) == 0;
}

static bool
keep_xattrs(int from, int to)
{
	ssize_t n = flistxattr(from, NULL, 0), at;
	HR_FREE char *names = NULL;
	bool ok = true;

	if (n <= 0)
		return n == 0 || errno == ENOTSUP;
	names = malloc(XATTR_NAMES_MAX);
	n = names != NULL ? flistxattr(from, names, XATTR_NAMES_MAX) : -1;
	for (at = 0; ok && at < n; at += (ssize_t)strlen(names + at) + 1)
		ok = keep_xattr(from, to, names + at);
	return ok && n >= 0;
}

/* Gives fd the old file's attributes. Returns false if fd cannot take the old file's place. */
static bool
keep_metadata(int fd, int old)
{
	struct stat st, was;

	if (fstat(fd, &st) < 0 || fstat(old, &was) < 0)
		return false;
	if ((st.st_uid != was.st_uid || st.st_gid != was.st_gid) &&
	    fchown(fd, was.st_uid, was.st_gid) < 0)
		return false;
	/* drops the directory's default access list, which the old file perhaps did not have */
	if (fremovexattr(fd, ACCESS_LIST) < 0 && errno != ENODATA && errno != ENOTSUP)
		return false;
	/* comes after fchown(), which clears mode bits; an access list's mask comes with its
	 * attribute */
	return fchmod(fd, was.st_mode & 07777) == 0 && keep_xattrs(old, fd);
}

/* ---- replacing the old file ---- */

static int
copy_into(int from, int old)
{
	struct stat st;

	if ((fcntl(old, F_GETFL) & O_ACCMODE) == O_RDONLY) {
		errno = ETXTBSY; /* open_old() could not open the old file for writing */
		return -1;
	}
	if (fstat(from, &st) < 0)
		return -1;
	/* fills the old file's holes as well, so that the copy cannot find the disk full */
	if (st.st_size > 0 && fallocate(old, FALLOC_FL_KEEP_SIZE, 0, st.st_size) < 0 &&
	    errno != EOPNOTSUPP && errno != ENOSYS)
		return -1;
	return copy_bytes(from, old) < 0 ? -1 : ftruncate(old, st.st_size);
}

/* Moves the spool to a place where no file exists; otherwise fails with EEXIST. */
static int
take_free(struct hr_spool *s, int dir, const char *leaf)
{
	int r;

	if (s->name[0] == '\0')
		return hr_path_link(s->fd, dir, leaf);
	r = hr_path_rename_free(s->dir, s->name, dir, leaf);
	if (r == 0)
		s->name[0] = '\0';
	return r;
}

/* Replaces old, the file at that place. Fails with EPERM if its inode must stay. */
static int
take_place(struct hr_spool *s, int dir, const char *leaf, int old)
{
	struct stat st;

	if (old < 0)
		return take_free(s, dir, leaf);
	if (fstat(old, &st) < 0)
		return -1;
	if (st.st_nlink > 1 || !keep_metadata(s->fd, old)) {
		errno = EPERM;
		return -1;
	}
	if ((s->name[0] == '\0' && take_name(s, dir, 0) < 0) ||
	    renameat(s->dir, s->name, dir, leaf) < 0)
		return -1;
	s->name[0] = '\0';
	return 0;
}

/* Puts the spool in the place of `old`, or of no file if `old` is -1. */
static int
put(struct hr_spool *s, int dir, const char *leaf, int old)
{
	struct hr_spool beside;
	int r = take_place(s, dir, leaf, old);

	if (r < 0 && errno == EXDEV) {
		hr_spool_init(&beside);
		r = open_in(&beside, dir, old >= 0 ? 0600 : 0666);
		if (r == 0)
			r = copy_bytes(s->fd, beside.fd);
		if (r == 0)
			r = take_place(&beside, dir, leaf, old);
		drop(&beside);
	}
	if (r < 0 && old >= 0 && (is_closed(errno) || errno == EBUSY))
		r = copy_into(s->fd, old);
	return r;
}

/* Opens the regular file dir/leaf, which the spool will replace. */
static int
open_old(int dir, const char *leaf)
{
	struct stat st;
	int fd = hr_reach_open(dir, leaf, O_WRONLY | O_NOFOLLOW | O_NONBLOCK);

	if (fd < 0 && errno == ETXTBSY) /* a running program can be replaced, not written to */
		fd = hr_reach_open(dir, leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		hr_fd_close(&fd);
		errno = EINVAL;
	}
	return fd;
}

/* Replaces the file that exists now, if there is one. */
static int
put_over(struct hr_spool *s, int dir, const char *leaf)
{
	HR_CLOSE int old = open_old(dir, leaf);

	if (old < 0 && errno != ENOENT)
		return -1;
	return put(s, dir, leaf, old);
}

int
hr_spool_put(struct hr_spool *s, int dir, const char *leaf, int old)
{
	int tries, r;

	if (old >= 0)
		return put(s, dir, leaf, old);
	for (tries = 0; (r = put_over(s, dir, leaf)) < 0 && errno == EEXIST && tries < RACES;)
		tries++;
	return r;
}

/* Completes a put that returned r. */
static int
placed(struct hr_spool *s, const struct hr_target *t, int r, struct hr_buf *why)
{
	if (r < 0)
		return hr_oserror_put(why, errno, t->text);
	if (s->name[0] != '\0') /* the bytes were copied */
		(void)unlinkat(s->dir, s->name, 0);
	s->name[0] = '\0';
	hr_tempfiles_forget();
	return 0;
}

int
hr_spool_place(struct hr_spool *s, const struct hr_target *t, struct hr_buf *why)
{
	return placed(s, t, hr_spool_put(s, t->dir, t->leaf, -1), why);
}

int
hr_spool_place_new(
    struct hr_spool *s, const struct hr_target *t, bool *ret_exists, struct hr_buf *why)
{
	int r = put(s, t->dir, t->leaf, -1);

	*ret_exists = r < 0 && errno == EEXIST;
	return placed(s, t, r, why);
}

int
hr_spool_move(int from_dir, const char *from, int dir, const char *leaf)
{
	struct hr_spool s = {.dir = fcntl(from_dir, F_DUPFD_CLOEXEC, 0)};
	struct stat st;
	int r = -1;

	s.fd = openat(from_dir, from, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (s.dir >= 0 && s.fd >= 0 && fstat(s.fd, &st) == 0) {
		(void)snprintf(s.name, sizeof(s.name), "%s", from);
		r = S_ISDIR(st.st_mode) ? take_free(&s, dir, leaf)
					: hr_spool_put(&s, dir, leaf, -1);
	}
	drop(&s);
	return r;
}
