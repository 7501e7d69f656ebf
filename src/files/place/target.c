/* Resolves names to a directory's descriptor and a last component. */
#include "config.h"

#include "files/place/target.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/process/pid.h"
#include "files/place/beneath.h"
#include "files/place/oserror.h"
#include "files/place/reach.h"

#define LEAVES "400: The name leads out of the destination"

int
hr_target_refuses(const struct stat *st)
{
	return S_ISREG(st->st_mode) ? 0 : S_ISDIR(st->st_mode) ? EISDIR : EINVAL;
}

static int
fail(struct hr_target *t, int sys, struct hr_buf *why)
{
	if (sys == EXDEV)
		return hr_oserror_text(why, LEAVES, t->text);
	return hr_oserror_put(why, sys, t->text);
}

/* Returns the kernel's path of an open directory or file, free of links; NULL with errno. */
static char *
real_name(int fd)
{
	char name[PATH_MAX];

	if (hr_pid_link(name, sizeof(name), "/proc/self/fd/%d", fd) < 0)
		return NULL;
	if (name[0] != '/') { /* "(unreachable)..." is in another mount namespace */
		errno = ENOENT;
		return NULL;
	}
	return strdup(name);
}

/* Returns the rest of path after base: "" for base itself, NULL if path is not beneath it. */
static const char *
below(const char *path, const char *base)
{
	size_t n = strlen(base);

	while (n > 0 && base[n - 1] == '/')
		n--;
	if (strncmp(path, base, n) != 0 || (path[n] != '/' && path[n] != '\0'))
		return NULL;
	return path + n + strspn(path + n, "/");
}

/* Resolves a name relative to root to its directory and leaf. */
static int
settle_leaf(struct hr_target *t, int root, const char *name, bool links, struct hr_buf *why)
{
	const char *slash = strrchr(name, '/');
	const char *leaf = slash != NULL ? slash + 1 : name;
	HR_FREE char *way = strndup(name, slash != NULL ? (size_t)(slash - name) : 0);

	t->leaf = strdup(leaf);
	if (way == NULL || t->leaf == NULL)
		return fail(t, ENOMEM, why);
	/* Python fails to open names such as "sub/", "" and ".." for writing */
	t->dir = links ? hr_reach_beneath(root, way, O_PATH | O_DIRECTORY)
		       : hr_beneath_open(root, way, O_PATH | O_DIRECTORY, false);
	if (t->dir < 0)
		return fail(t, errno, why);
	if (leaf[0] == '\0' || strcmp(leaf, ".") == 0 || strcmp(leaf, "..") == 0)
		return fail(t, EISDIR, why);
	t->exists = fstatat(t->dir, t->leaf, &t->st, AT_SYMLINK_NOFOLLOW) == 0;
	if (!t->exists && errno != ENOENT)
		return fail(t, errno, why);
	return 0;
}

static void
target_forget(struct hr_target *t)
{
	hr_fd_close(&t->dir);
	free(t->leaf);
	t->leaf = NULL;
	t->exists = false;
}

/* Continues with the target of a link, if that is in root. */
static int
follow_leaf(struct hr_target *t, int root, const char *name, struct hr_buf *why)
{
	int r;
	HR_CLOSE int fd = hr_reach_beneath(root, name, O_PATH);
	HR_FREE char *end = NULL;
	HR_FREE char *base = NULL;
	const char *rest;

	if (fd < 0)
		/* ELOOP is returned without openat2 */
		return fail(t, errno == ELOOP ? EXDEV : errno, why);
	end = real_name(fd);
	base = real_name(root);
	rest = end != NULL && base != NULL ? below(end, base) : NULL;
	if (rest != NULL) {
		target_forget(t);
		r = settle_leaf(t, root, rest, false, why);
	} else {
		r = fail(t, EXDEV, why);
	}
	return r;
}

/* Resolves a name that leaves the directory: allowed if it ends in the working directory. */
static int
settle_elsewhere(
    struct hr_target *t, int root, const char *name, const char *work_dir, struct hr_buf *why)
{
	int r = -1;
	HR_FREE char *base = NULL;
	HR_FREE char *from = NULL;
	HR_FREE char *way = NULL;
	HR_CLOSE int ws = open(work_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const char *rest = NULL;

	if (ws >= 0) {
		base = real_name(ws);
		from = name[0] == '/' ? strdup("/") : real_name(root);
		way = from != NULL ? hr_path_join(from, name) : NULL;
		if (base != NULL && way != NULL)
			rest = below(way, base);
		if (rest == NULL && name[0] == '/')
			rest = below(name, work_dir);
	}
	if (rest != NULL)
		r = settle_leaf(t, ws, rest, false, why);
	if (rest == NULL || (r < 0 && t->dir < 0 && errno == ELOOP))
		r = fail(t, EXDEV, why);
	return r;
}

static bool
leaves_as_text(const char *name)
{
	const char *p;
	size_t n;
	long depth = 0;

	if (name[0] == '/')
		return true;
	for (p = name; *p != '\0'; p += n + strspn(p + n, "/")) {
		n = strcspn(p, "/");
		if (n == 2 && memcmp(p, "..", 2) == 0)
			depth--;
		else if (n != 1 || *p != '.')
			depth++;
		if (depth < 0)
			return true;
	}
	return false;
}

int
hr_target_open(struct hr_target *t, const char *directory, const char *name, const char *work_dir,
    struct hr_buf *why)
{
	int r, sys;
	HR_CLOSE int root = -1;

	memset(t, 0, sizeof(*t));
	t->dir = -1;
	t->text = hr_path_join(directory, name);
	if (t->text == NULL)
		return hr_oserror_put(why, ENOMEM, NULL);
	root = hr_reach_open_as(AT_FDCWD, directory, O_PATH | O_DIRECTORY, true);
	if (root < 0)
		return fail(t, errno, why);
	if (leaves_as_text(name)) {
		r = settle_elsewhere(t, root, name, work_dir, why);
	} else {
		r = settle_leaf(t, root, name, true, why);
		if (r == 0 && t->exists && S_ISLNK(t->st.st_mode))
			r = follow_leaf(t, root, name, why);
	}
	if (r == 0 && t->exists) {
		sys = hr_target_refuses(&t->st);
		if (S_ISLNK(t->st.st_mode))
			r = fail(t, EXDEV, why);
		else if (sys == EINVAL)
			r = hr_oserror_text(why, "400: Not a regular file", t->text);
		else if (sys != 0)
			r = fail(t, sys, why);
		else if (faccessat(t->dir, t->leaf, W_OK, AT_EACCESS) < 0)
			r = fail(t, errno, why);
	}
	return r;
}

void
hr_target_close(struct hr_target *t)
{
	target_forget(t);
	free(t->text);
	t->text = NULL;
}

/* Opens the longest existing part of path, and cuts path to it. Returns -1 with errno. *ret_shells
 * is set as by hr_reach_open_whose(). */
static int
open_there(char *path, bool *ret_shells)
{
	size_t n = strlen(path);
	int fd = hr_reach_open_as(AT_FDCWD, path, O_PATH, false);

	while (fd < 0 && n > 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES)) {
		while (n > 0 && path[n - 1] == '/')
			n--;
		while (n > 0 && path[n - 1] != '/')
			n--;
		path[n] = '\0';
		fd = hr_reach_open_whose(n > 0 ? path : "/", O_PATH, ret_shells);
	}
	return fd;
}

/* Makes one more directory below *at. Returns 0, or -1 with errno. */
static int
make_below(int *at, const char *name, bool shells)
{
	struct stat st;
	int next = -1;

	if (strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0)
		next = openat(*at, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	else if (hr_reach_mkdir(*at, name, 0777, shells) == 0 ||
		 errno == EEXIST) /* another process was faster */
		next = openat(*at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0)
		return -1;
	hr_fd_close(at);
	*at = next;
	/* open_there() did not follow the link */
	if (fstat(next, &st) == 0 && S_ISLNK(st.st_mode)) {
		errno = EACCES;
		return -1;
	}
	return 0;
}

int
hr_target_mkdirs(const char *path, size_t *ret_made, struct hr_buf *why)
{
	HR_FREE char *part = strdup(path);
	bool shells = false;
	int r = 0;
	HR_CLOSE int at = part != NULL ? open_there(part, &shells) : -1;
	size_t i, n;

	*ret_made = strlen(path);
	if (part == NULL)
		return hr_oserror_put(why, ENOMEM, NULL);
	if (at < 0)
		r = hr_oserror_put(why, errno, path);
	else
		*ret_made = strlen(part);
	memcpy(part, path, strlen(path) + 1);
	for (i = *ret_made; r == 0 && path[i] != '\0'; i += n + (path[i + n] == '/')) {
		n = strcspn(path + i, "/");
		part[i + n] = '\0';
		if (n > 0 && make_below(&at, part + i, shells) < 0)
			r = hr_oserror_put(why, errno, part);
		part[i + n] = path[i + n];
	}
	if (r < 0)
		hr_target_rmdirs(path, *ret_made);
	return r;
}

/* Removes a directory below way, which is relative to root and free of links. */
static bool
remove_below(int root, const char *way, size_t way_len, const char *name, size_t len)
{
	HR_FREE char *leaf = strndup(name, len);
	HR_FREE char *dir = strndup(way, way_len);
	HR_CLOSE int at =
	    dir != NULL && leaf != NULL
		? hr_beneath_open(root, dir + strspn(dir, "/"), O_PATH | O_DIRECTORY, false)
		: -1;

	return at >= 0 && (unlinkat(at, leaf, AT_REMOVEDIR) == 0 || errno == ENOENT);
}

void
hr_target_rmdirs(const char *path, size_t made)
{
	HR_FREE char *top = strndup(path, made);
	HR_CLOSE int root = top == NULL ? -1
					: hr_reach_open_as(AT_FDCWD, made > 0 ? top : "/",
					      O_PATH | O_DIRECTORY, true);
	size_t n = strlen(path), end;

	while (root >= 0 && n > made) {
		while (n > made && path[n - 1] == '/')
			n--;
		end = n;
		while (n > made && path[n - 1] != '/')
			n--;
		if (n == end || !remove_below(root, path + made, n - made, path + n, end - n))
			break;
	}
}
