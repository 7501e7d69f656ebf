/* Handles files of the back-end "cli": copies and directory listings. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/path.h"
#include "files/place/atomic.h"
#include "host/direct/direct_int.h"
#include "base/err.h"
#include "host/transfer/zip.h"
#include "proto/json.h"

#define PIECE 65536
#define DEPTH_MAX 200

static int
failed(struct hr_err *err, int sys, const char *path)
{
	return hr_err_set(
	    err, HR_E_RUNTIME, "Unexpected error copying file: %s: %s", path, strerror(sys));
}

static int
copy_bytes(int in, int out)
{
	char piece[PIECE];
	ssize_t n;

	while ((n = hr_fd_read(in, piece, sizeof(piece))) > 0)
		if (hr_fd_write_full(out, piece, (size_t)n, NULL) != 0)
			return -1;
	return (int)n;
}

/* Copies mode and times of another file. */
static int
liken(int fd, const struct stat *st)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};

	return fchmod(fd, st->st_mode & 07777) == 0 ? futimens(fd, times) : -1;
}

/* Writes the file completely or not at all. A replaced file keeps its owner, attributes and hard
 * links. */
static int
put_file(int in, const struct stat *st, const char *to, struct hr_err *e)
{
	struct hr_atomic a;
	HR_CLOSE int fd = -1;
	bool over;

	if (hr_atomic_open(&a, to, 0600, e) < 0)
		return -1;
	over = a.old >= 0;
	if (copy_bytes(in, a.spool.fd) != 0 || (!over && liken(a.spool.fd, st) != 0)) {
		(void)hr_err_sys(e, errno, "%s", to);
		hr_atomic_abort(&a);
		return -1;
	}
	if (hr_atomic_commit(&a, e) != 0)
		return -1;
	if (!over)
		return 0;
	fd = open(to, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd >= 0 && liken(fd, st) == 0 ? 0 : hr_err_sys(e, errno, "%s", to);
}

static int
copy_file(const char *from, const char *to, struct hr_err *err)
{
	struct stat st, there;
	struct hr_err e = {.code = HR_OK};
	int r = -1;
	HR_CLOSE int in = open(from, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (in < 0 || fstat(in, &st) != 0)
		(void)failed(err, errno, from);
	else if (!S_ISREG(st.st_mode))
		(void)hr_err_set(
		    err, HR_E_NOTFOUND, "Source path '%s' is not a valid file or directory.", from);
	else if (stat(to, &there) == 0 && there.st_dev == st.st_dev && there.st_ino == st.st_ino)
		r = 0;
	else if (put_file(in, &st, to, &e) != 0)
		(void)failed(err, e.code == HR_E_UNSUPPORTED ? EINVAL : e.sys, to);
	else
		r = 0;
	return r;
}

static int copy_tree(const char *from, const char *to, int depth, struct hr_err *err);

static int
copy_entry(const char *from, const char *to, const char *name, int depth, struct hr_err *err)
{
	HR_FREE char *source = hr_path_join(from, name);
	HR_FREE char *target = hr_path_join(to, name);
	struct stat st;
	int r = 0;

	if (source == NULL || target == NULL)
		r = hr_err_nomem(err);
	else if (stat(source, &st) != 0)
		r = failed(err, errno, source);
	else if (S_ISDIR(st.st_mode))
		r = copy_tree(source, target, depth + 1, err);
	else
		r = copy_file(source, target, err);
	return r;
}

/* Copies into existing directories and follows links. */
static int
copy_tree(const char *from, const char *to, int depth, struct hr_err *err)
{
	HR_CLOSEDIR DIR *dir = depth > DEPTH_MAX ? NULL : opendir(from);
	struct hr_err e = {0};
	struct dirent *entry;
	int r = 0;

	if (dir == NULL)
		return failed(err, depth > DEPTH_MAX ? ELOOP : errno, from);
	if (hr_path_mkdirs(to, 0777, NULL, &e) < 0)
		r = failed(err, e.sys, to);
	while (r == 0 && (entry = hr_dir_next(dir)) != NULL)
		r = copy_entry(from, to, entry->d_name, depth, err);
	if (r == 0 && errno != 0)
		r = failed(err, errno, from);
	return r;
}

static int
make_dir(char *path, bool parent_only, struct hr_err *err)
{
	char *slash = strrchr(path, '/');
	struct hr_err e = {0};
	int r;

	if (parent_only && slash == path)
		return 0;
	if (parent_only)
		*slash = '\0';
	r = hr_path_mkdirs(path, 0777, NULL, &e);
	if (parent_only)
		*slash = '/';
	return r == 0 ? 0 : failed(err, e.sys, path);
}

/* Copies into `place` if it is a directory, `to` ends with a slash, or the missing target has no
 * suffix; otherwise onto a file. */
static int
copy_one(const char *from, const char *to, char *place, struct hr_err *err)
{
	const char *last = strrchr(place, '/') + 1;
	bool into = hr_path_is_directory(place) || to[strlen(to) - 1] == '/' ||
		    (access(place, F_OK) != 0 && strchr(last, '.') == NULL);
	HR_FREE char *name = hr_path_name(from);
	HR_FREE char *target = NULL;
	int r;

	if (name == NULL || (into && (target = hr_path_join(place, name)) == NULL))
		r = hr_err_nomem(err);
	else if ((r = make_dir(place, !into, err)) == 0)
		r = copy_file(from, into ? target : place, err);
	return r;
}

int
hr_direct_copy_to(void *self, const char *from, const char *to, bool recursive, struct hr_err *err)
{
	HR_FREE char *place = NULL;
	HR_FREE char *name = NULL;
	HR_FREE char *target = NULL;
	struct stat st;

	if (stat(from, &st) != 0)
		return hr_err_set(err, HR_E_NOTFOUND, "Source path '%s' does not exist.", from);
	if (S_ISDIR(st.st_mode) && !recursive)
		return hr_err_set(
		    err, HR_E_NOTFOUND, "Source path '%s' is not a valid file or directory.", from);
	if (*to == '\0')
		return hr_err_set(
		    err, HR_E_INVAL, "the target of the copy must name a file or directory");
	place = hr_direct_path(self, to, err);
	if (place == NULL)
		return -1;
	if (!S_ISDIR(st.st_mode))
		return copy_one(from, to, place, err);
	name = hr_path_name(from);
	target = name != NULL ? hr_path_join(place, name) : NULL;
	return target != NULL ? copy_tree(from, target, 0, err) : hr_err_nomem(err);
}

int
hr_direct_copy_from(void *self, const char *path, char **ret_file, struct hr_err *err)
{
	HR_FREE char *place = hr_direct_path(self, path, err);
	int r = -1;

	if (place == NULL)
		return -1;
	if (access(place, F_OK) != 0)
		(void)hr_err_set(err, HR_E_NOTFOUND, "Path not found: %s", path);
	else if ((*ret_file = hr_zip_directory(place, false, true, err)) != NULL)
		r = 0;
	return r;
}

static void
put_name(struct hr_buf *b, const char *path)
{
	if (b->len > 1)
		hr_buf_addc(b, ',');
	(void)hr_json_put_str(b, path, strlen(path), HR_JSON_REPLACE);
}

static int
put_names(struct hr_buf *b, const char *place, struct hr_err *err)
{
	HR_CLOSEDIR DIR *dir = opendir(place);
	struct dirent *e;
	int r = 0;

	if (dir == NULL)
		return hr_err_sys(err, errno, "list %s", place);
	while (r == 0 && (e = hr_dir_next(dir)) != NULL) {
		HR_FREE char *name = hr_path_join(place, e->d_name);

		if (name == NULL)
			r = hr_err_nomem(err);
		else
			put_name(b, name);
	}
	if (r == 0 && errno != 0)
		r = hr_err_sys(err, errno, "list %s", place);
	return r;
}

int
hr_direct_list(void *self, const char *path, char **ret_json, struct hr_err *err)
{
	HR_BUF(b, HR_DIRECT_TEXT_MAX);
	HR_FREE char *place = hr_direct_path(self, path != NULL ? path : ".", err);
	int r = 0;

	if (place == NULL)
		return -1;
	hr_buf_addc(&b, '[');
	if (hr_path_is_directory(place))
		r = put_names(&b, place, err);
	else if (access(place, F_OK) == 0)
		put_name(&b, place);
	hr_buf_addc(&b, ']');
	if (r == 0 && (*ret_json = hr_buf_end(&b, err)) == NULL)
		r = -1;
	return r;
}
