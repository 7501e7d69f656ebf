/* Paths and trees. Invariant: below the top of a walk no symbolic link is followed. */
#include "config.h"

#include "base/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"

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
			/* EROFS and the like for what exists all the same is no error */
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
	HR_BUF(tmp, strlen(path) + 16);
	int fd, r = -1;

	hr_buf_addf(&tmp, "%s.XXXXXX", path);
	if (hr_buf_check(&tmp, err) < 0)
		return -1;
	fd = mkostemp(tmp.p, O_CLOEXEC);
	if (fd < 0)
		return hr_err_sys(err, errno, "%s", path);
	if (hr_fd_write_full(fd, p, len, err) < 0)
		hr_err_prefix(err, "%s", path);
	else if (fchmod(fd, mode) != 0 || rename(tmp.p, path) != 0)
		(void)hr_err_sys(err, errno, "%s", path);
	else
		r = 0;
	hr_fd_close(&fd);
	if (r != 0)
		(void)unlink(tmp.p);
	return r;
}

struct walk {
	hr_path_visit_fn *fn;
	void *arg;
	unsigned skipped;
};

static int walk_entry(struct walk *w, int dirfd, const char *name, unsigned depth);

static int
walk_directory(struct walk *w, int dirfd, const char *name, unsigned depth)
{
	int fd, r = 0;
	struct dirent *e;
	DIR *d;

	fd = depth < HR_PATH_DEPTH
		 ? openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
		 : -1;
	d = hr_dir_take(fd);
	if (d == NULL) {
		w->skipped++;
		return 0;
	}
	while (r >= 0 && (e = hr_dir_next(d)) != NULL)
		r = walk_entry(w, fd, e->d_name, depth + 1);
	if (r >= 0 && errno != 0)
		w->skipped++;
	(void)closedir(d);
	return r < 0 ? r : 0;
}

static int
walk_entry(struct walk *w, int dirfd, const char *name, unsigned depth)
{
	struct stat st;
	int r;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) {
		if (errno != ENOENT && errno != ENOTDIR) /* otherwise it is gone meanwhile */
			w->skipped++;
		return 0;
	}
	if (S_ISDIR(st.st_mode)) {
		r = walk_directory(w, dirfd, name, depth);
		if (r < 0)
			return r;
	}
	return w->fn(dirfd, name, &st, w->arg);
}

int
hr_path_walk(const char *path, hr_path_visit_fn *fn, void *arg, unsigned *ret_skipped)
{
	struct walk w = {fn, arg, 0};
	int r = walk_entry(&w, AT_FDCWD, path, 0);

	if (ret_skipped != NULL)
		*ret_skipped = w.skipped;
	return r < 0 ? r : 0;
}

static int
remove_one(int dirfd, const char *name, const struct stat *st, void *arg)
{
	int *first = arg;

	if (unlinkat(dirfd, name, S_ISDIR(st->st_mode) ? AT_REMOVEDIR : 0) != 0 &&
	    errno != ENOENT && *first == 0)
		*first = errno;
	return 0;
}

int
hr_path_remove(const char *path, struct hr_err *err)
{
	struct stat st;
	unsigned skipped;
	int first = 0;

	(void)hr_path_walk(path, remove_one, &first, &skipped); /* remove_one never stops it */
	/* an empty directory that was skipped is removed all the same */
	if (first == 0 && skipped > 0 && lstat(path, &st) == 0)
		first = EIO;
	if (first != 0)
		return hr_err_sys(err, first, "%s: remove", path);
	return 0;
}
