/* Handles paths and single files. */
#include "config.h"

#include "base/path.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/plain.h"
#include "base/random.h"
#include "base/tempfiles.h"

#define WRITER_MS 2000 /* time for which another writer is waited for */
#define PAUSE_MS 10

char *
hr_path_join(const char *dir, const char *name)
{
	size_t n = strlen(dir);
	HR_BUF(b, n + strlen(name) + 1);

	if (name[0] == '/')
		return strdup(name);
	hr_buf_adds(&b, dir);
	if (n > 0 && dir[n - 1] != '/')
		hr_buf_addc(&b, '/');
	hr_buf_adds(&b, name);
	return hr_buf_end(&b, NULL);
}

char *
hr_path_which(const char *dirs, const char *name)
{
	const char *end;
	char *path;

	for (; dirs != NULL && *dirs != '\0'; dirs = *end == ':' ? end + 1 : end) {
		end = strchrnul(dirs, ':');
		if (asprintf(&path, "%.*s/%s", (int)(end - dirs), dirs, name) < 0)
			return NULL;
		if (end > dirs && access(path, X_OK) == 0)
			return path;
		free(path);
	}
	return NULL;
}

const char *
hr_path_leaf(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

char *
hr_path_name(const char *path)
{
	size_t n = strlen(path), from;

	while (n > 0 && path[n - 1] == '/')
		n--;
	for (from = n; from > 0 && path[from - 1] != '/'; from--)
		;
	return strndup(path + from, n - from);
}

bool
hr_path_leads_out(const char *path)
{
	size_t n;

	if (*path == '/')
		return true;
	for (; *path != '\0'; path += n + (path[n] == '/')) {
		n = strcspn(path, "/");
		if (n == 2 && memcmp(path, "..", 2) == 0)
			return true;
	}
	return false;
}

bool
hr_path_is_within(const char *path, const char *directory)
{
	size_t len = strlen(directory);

	return strncmp(path, directory, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

bool
hr_path_is_directory(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

char *
hr_path_absolute(const char *path, struct hr_err *err)
{
	HR_FREE char *cwd = NULL;
	char *joined;

	if (path[0] != '/' && (cwd = getcwd(NULL, 0)) == NULL) {
		(void)hr_err_sys(err, errno, "current directory");
		return NULL;
	}
	joined = hr_path_join(cwd != NULL ? cwd : "", path);
	return joined != NULL ? joined : hr_err_null(err);
}

int
hr_path_mkdirs(const char *path, mode_t mode, unsigned *ret_made, struct hr_err *err)
{
	char *at;
	HR_FREE char *copy = strdup(path);
	unsigned made = 0;
	struct stat st;
	int r = 0;

	if (copy == NULL)
		return hr_err_nomem(err);
	for (at = copy; r == 0 && at != NULL;) {
		at = strchr(at + 1, '/');
		if (at != NULL)
			*at = '\0';
		if (mkdir(copy, mode) == 0)
			made++;
		else if (errno != EEXIST)
			/* mkdir may report EROFS and the like for a directory that exists, which is
			 * no error. */
			r = stat(copy, &st) == 0 && S_ISDIR(st.st_mode)
				? 0
				: hr_err_sys(err, errno, "%s", copy);
		if (at != NULL)
			*at = '/';
	}
	if (r == 0 && (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)))
		r = hr_err_sys(err, ENOTDIR, "%s", path);
	if (ret_made != NULL)
		*ret_made = made;
	return r;
}

static bool
is_own_link(int dir, const char *name)
{
	struct stat st;

	return fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) &&
	       (st.st_uid == 0 || st.st_uid == geteuid());
}

/* Sets the reason why `name` in dir was refused. */
static int
not_passed(int dir, const char *name, const char *path, struct hr_err *err)
{
	int sys = errno;
	struct stat st;

	if (sys == EACCES && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    S_ISLNK(st.st_mode) && !is_own_link(dir, name))
		return hr_err_set(err, HR_E_UNTRUSTED,
		    "%.120s is not trusted: %.60s is a link of user %lu, who is neither you nor "
		    "root; remove it, or name another place",
		    path, name, (unsigned long)st.st_uid);
	return hr_err_sys(err, sys, "%s", path);
}

int
hr_path_mkdirs_own(const char *path, mode_t mode, unsigned *ret_made, struct hr_err *err)
{
	HR_FREE char *copy = strdup(path);
	unsigned made = 0;
	char *part, *rest = copy;
	int at = open(path[0] == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC), next, r = 0;
	int sys;

	if (copy == NULL || at < 0) {
		hr_fd_close(&at);
		return copy == NULL ? hr_err_nomem(err) : hr_err_sys(err, errno, "%s", path);
	}
	while (r == 0 && (part = strsep(&rest, "/")) != NULL) {
		if (*part == '\0')
			continue;
		next = hr_plain_walk_as(at, part, O_PATH | O_DIRECTORY, geteuid());
		if (next < 0 && errno == ENOENT) {
			sys = mkdirat(at, part, mode) == 0 ? 0 : errno;
			made += sys == 0;
			next = hr_plain_walk_as(at, part, O_PATH | O_DIRECTORY, geteuid());
			if (next < 0 && sys != 0 && sys != EEXIST)
				errno = sys; /* reports why the directory is still missing */
		}
		if (next < 0)
			r = not_passed(at, part, path, err);
		hr_fd_close(&at);
		at = next;
	}
	hr_fd_close(&at);
	if (ret_made != NULL)
		*ret_made = made;
	return r;
}

int
hr_path_open_own(const char *path, int flags, mode_t mode, struct hr_err *err)
{
	const char *name = hr_path_leaf(path);
	size_t n = (size_t)(name - path);
	HR_FREE char *above = n > 0 ? strndup(path, n > 1 ? n - 1 : n) : strdup(".");
	HR_CLOSE int dir = -1;
	struct stat st;
	int fd;

	if (above == NULL)
		return hr_err_nomem(err);
	dir = hr_plain_walk_as(AT_FDCWD, above, O_PATH | O_DIRECTORY, geteuid());
	if (dir < 0)
		return not_passed(AT_FDCWD, above, path, err);
	/* O_NONBLOCK: opening a FIFO would block until somebody reads it. */
	fd = openat(dir, name, flags | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, mode);
	if (fd < 0 ? errno == ENXIO : fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode)) {
		hr_fd_close(&fd);
		return hr_err_set(err, HR_E_INVAL, "%s is a FIFO or a socket, and no file", path);
	}
	if (fd >= 0)
		(void)fcntl(fd, F_SETFL, flags);
	if (fd < 0 && errno == ELOOP) {
		errno = EACCES;
		if (is_own_link(dir, name)) /* the entry is a link such as /dev/stderr */
			fd = openat(dir, name, flags | O_CREAT | O_CLOEXEC, mode);
	}
	return fd >= 0 ? fd : not_passed(dir, name, path, err);
}

int
hr_path_read_fd(int fd, const char *path, struct hr_buf *b, struct hr_err *err)
{
	char chunk[4096];
	ssize_t n;

	while ((n = hr_fd_read(fd, chunk, sizeof(chunk))) > 0) {
		hr_buf_add(b, chunk, (size_t)n);
		if (b->fail != HR_OK)
			break;
	}
	if (n < 0)
		return hr_err_sys(err, errno, "%s", path);
	return hr_buf_check(b, err) == 0 ? 0 : hr_err_prefix(err, "%s", path);
}

int
hr_path_read(const char *path, struct hr_buf *b, struct hr_err *err)
{
	HR_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return hr_err_sys(err, errno, "%s", path);
	return hr_path_read_fd(fd, path, b, err);
}

int
hr_path_write(const char *path, const void *p, size_t len, mode_t mode, struct hr_err *err)
{
	return hr_path_write_for(path, p, len, mode, HR_PATH_OWN, err);
}

/* Returns true if this process has the lock of the file of that name: it alone may rename or remove
 * the file. Otherwise errno is EWOULDBLOCK if another process has it, or has replaced the file. */
static bool
lock_temporary(int fd, const char *name)
{
	struct stat own, named;

	if (flock(fd, LOCK_EX | LOCK_NB) != 0)
		return false;
	if (fstat(fd, &own) == 0 && lstat(name, &named) == 0 && own.st_ino == named.st_ino &&
	    own.st_dev == named.st_dev)
		return true;
	errno = EWOULDBLOCK;
	return false;
}

bool
hr_path_clean(const char *path)
{
	HR_BUF(tmp, strlen(path) + sizeof(HR_PATH_UNFINISHED));
	HR_CLOSE int fd = -1;

	hr_buf_addf(&tmp, "%s" HR_PATH_UNFINISHED, path);
	if (hr_buf_check(&tmp, NULL) < 0)
		return false;
	fd = open(tmp.p, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT;
	return lock_temporary(fd, tmp.p) && unlink(tmp.p) == 0;
}

/* Makes the temporary file of a path, with a lock, and sets its name in `tmp`. Waits for another
 * writer of the path. The file has a random name, which nobody finds again, only if that writer
 * stands still, or if the name is taken by something else. */
static int
open_temporary(const char *path, struct hr_buf *tmp)
{
	const int64_t until = hr_now_ms() + WRITER_MS;
	int fd;

	hr_buf_addf(tmp, "%s" HR_PATH_UNFINISHED, path);
	while (hr_buf_check(tmp, NULL) == 0) {
		fd = open(tmp->p, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0 && lock_temporary(fd, tmp->p))
			return fd;
		/* another writer has taken the new file for that of a killed one */
		if (fd >= 0) {
			hr_fd_close(&fd);
		} else if (errno != EEXIST) {
			break;
		} else if (!hr_path_clean(path)) {
			if (errno != EWOULDBLOCK || hr_now_ms() >= until)
				break;
			(void)poll(NULL, 0, PAUSE_MS);
		}
	}
	hr_buf_reset(tmp);
	hr_buf_addf(tmp, "%s.XXXXXX", path);
	return hr_buf_check(tmp, NULL) == 0 ? mkostemp(tmp->p, O_CLOEXEC) : -1;
}

int
hr_path_unnamed_at(int at, const char *dir, mode_t mode)
{
	int fd = access("/proc/self/fd", F_OK); /* hr_path_link() needs it */

	if (fd == 0)
		fd = openat(at, dir, O_TMPFILE | O_RDWR | O_CLOEXEC, mode);
	if (fd < 0 && (errno == EISDIR || errno == EINVAL || errno == ENOENT))
		errno = EOPNOTSUPP;
	return fd;
}

int
hr_path_link(int fd, int dir, const char *name)
{
	char proc[32];

	(void)snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, proc, dir, name, AT_SYMLINK_FOLLOW);
}

int
hr_path_new(const char *path, mode_t mode, char **ret_tmp, struct hr_err *err)
{
	HR_FREE char *dir = strndup(path, (size_t)(hr_path_leaf(path) - path));
	char random[17];
	int fd;

	*ret_tmp = NULL;
	if (hr_random_hex(random, sizeof(random) - 1, err) < 0)
		return -1;
	if (dir == NULL || asprintf(ret_tmp, "%s" HR_TEMPFILE_PREFIX "%s", dir, random) < 0) {
		*ret_tmp = NULL; /* which asprintf() may have changed */
		return hr_err_nomem(err);
	}
	fd = hr_path_unnamed_at(AT_FDCWD, *dir != '\0' ? dir : ".", mode);
	if (fd < 0 && errno == EOPNOTSUPP)
		fd = open(*ret_tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	return fd >= 0 ? fd : hr_err_sys(err, errno, "create %s", path);
}

int
hr_path_put(int fd, const char *tmp, const char *path, bool over, int r, struct hr_err *err)
{
	if (r == 0 && access(tmp, F_OK) < 0 && hr_path_link(fd, AT_FDCWD, tmp) < 0)
		r = hr_err_sys(err, errno, "create %s", path);
	if (close(fd) < 0 && r == 0)
		r = hr_err_sys(err, errno, "write %s", path);
	if (r == 0 &&
	    (over ? rename(tmp, path) : hr_path_rename_free(AT_FDCWD, tmp, AT_FDCWD, path)) < 0)
		r = hr_err_sys(err, errno, "rename to %s", path);
	if (r < 0)
		(void)unlink(tmp);
	return r;
}

int
hr_path_unnamed(const char *dir)
{
	int fd = hr_path_unnamed_at(AT_FDCWD, dir, 0600);
	HR_FREE char *path = NULL;

	if (fd >= 0 || errno != EOPNOTSUPP)
		return fd;
	path = hr_path_join(dir, ".unnamed");
	/* a killed process may have left one */
	while (path != NULL && (fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600)) < 0 &&
	       errno == EEXIST && (unlink(path) == 0 || errno == ENOENT))
		;
	if (fd >= 0)
		(void)unlink(path);
	return fd;
}

int
hr_path_write_for(
    const char *path, const void *p, size_t len, mode_t mode, uid_t owner, struct hr_err *err)
{
	HR_BUF(tmp, strlen(path) + 16);
	int fd = open_temporary(path, &tmp), r = -1;

	if (hr_buf_check(&tmp, err) < 0)
		return -1;
	if (fd < 0)
		return hr_err_sys(err, errno, "%s", path);
	if (hr_fd_write_full(fd, p, len, err) < 0)
		hr_err_prefix(err, "%s", path);
	else if (fchmod(fd, mode) != 0 || fchown(fd, owner, (gid_t)-1) != 0 ||
		 rename(tmp.p, path) != 0)
		(void)hr_err_sys(err, errno, "%s", path);
	else
		r = 0;
	if (r != 0)
		(void)unlink(tmp.p);
	hr_fd_close(&fd);
	return r;
}

int
hr_path_unlink(const char *path)
{
	HR_BUF(tmp, strlen(path) + sizeof(HR_PATH_UNFINISHED));

	hr_buf_addf(&tmp, "%s" HR_PATH_UNFINISHED, path);
	if (hr_buf_check(&tmp, NULL) == 0)
		(void)unlink(tmp.p);
	return unlink(path);
}

int
hr_path_rename_free(int from_dir, const char *from, int to_dir, const char *to)
{
	struct stat st;

	if (renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE) == 0)
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -1;
	if (fstatat(to_dir, to, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		errno = EEXIST;
		return -1;
	}
	return renameat(from_dir, from, to_dir, to);
}
