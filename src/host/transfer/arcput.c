/* Puts a directory into a zip or tar archive, packs and unpacks trees, and defines the table of
 * handrail-archives.so. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/fd.h"
#include "base/path.h"
#include "host/transfer/archives.h"
#include "base/err.h"

#define PIECE 65536
#define DEPTH_MAX 200

int
hr_arc_failed(struct archive *a, const char *what, struct hr_err *err)
{
	return hr_err_set(err, HR_E_RUNTIME, "%s: %s", what, archive_error_string(a));
}

static int
put_content(const struct hr_arc *to, int fd, const char *name, struct hr_err *err)
{
	HR_FREE char *piece = malloc(PIECE);
	ssize_t n = 0;
	int r = 0;

	if (piece == NULL)
		return hr_err_nomem(err);
	while (r == 0 && (n = hr_fd_read(fd, piece, PIECE)) > 0)
		if (archive_write_data(to->a, piece, (size_t)n) != n)
			r = hr_arc_failed(to->a, to->what, err);
	if (n < 0 && r == 0)
		r = hr_err_sys(err, errno, "read %s", name);
	return r;
}

static int
put_entry(
    const struct hr_arc *to, int fd, const struct stat *st, const char *name, struct hr_err *err)
{
	struct archive_entry *e = archive_entry_new();
	bool executable = S_ISDIR(st->st_mode) || (st->st_mode & 0100) != 0;
	int r;

	if (e == NULL)
		return hr_err_nomem(err);
	archive_entry_set_pathname(e, name);
	if (to->plain) {
		archive_entry_set_filetype(e, st->st_mode & S_IFMT);
		archive_entry_set_perm(e, executable ? 0755 : 0644);
		archive_entry_set_mtime(e, 0, 0);
		if (S_ISREG(st->st_mode))
			archive_entry_set_size(e, st->st_size);
	} else {
		archive_entry_copy_stat(e, st);
	}
	if (archive_write_header(to->a, e) != ARCHIVE_OK)
		r = hr_arc_failed(to->a, to->what, err);
	else
		r = S_ISREG(st->st_mode) ? put_content(to, fd, name, err) : 0;
	archive_entry_free(e);
	return r;
}

static int
put_below(const struct hr_arc *to, int dirfd, const char *prefix, int depth, struct hr_err *err);

static int
put_one(const struct hr_arc *to, int dirfd, const char *file, const char *name, int depth,
    struct hr_err *err)
{
	struct stat st, own;
	bool follow;
	int r = 0;
	HR_CLOSE int fd = -1;

	if (fstatat(dirfd, file, &own, AT_SYMLINK_NOFOLLOW) != 0)
		return errno == ENOENT ? 0 : hr_err_sys(err, errno, "%s", name);
	st = own;
	follow = to->links && S_ISLNK(own.st_mode);
	if (follow && fstatat(dirfd, file, &st, 0) != 0)
		return 0; /* a dangling link is left out */
	if ((!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode)) ||
	    (follow && S_ISDIR(st.st_mode)))
		return 0; /* is left out, since opening a special file may have effects */
	fd = openat(
	    dirfd, file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW));
	if (fd < 0 || fstat(fd, &st) != 0)
		r = hr_err_sys(err, errno, "open %s", name);
	else if (S_ISREG(st.st_mode) || (S_ISDIR(st.st_mode) && to->plain))
		r = put_entry(to, fd, &st, name, err);
	if (r == 0 && S_ISDIR(st.st_mode) && !follow)
		r = put_below(to, fd, name, depth + 1, err);
	return r;
}

static int
no_dots(const struct dirent *e)
{
	return strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
}

static int
by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int
put_below(const struct hr_arc *to, int dirfd, const char *prefix, int depth, struct hr_err *err)
{
	HR_FREE struct dirent **list = NULL;
	struct stat st;
	char *name;
	int n, r = 0;
	int i;

	if (depth > DEPTH_MAX)
		return hr_err_set(err, HR_E_INVAL, "%s: nested too deep", prefix);
	n = scandirat(dirfd, ".", &list, no_dots, by_name);
	if (n < 0)
		return hr_err_sys(err, errno, "read %s", prefix);
	if (n == 0 && !to->plain && *prefix != '\0')
		r = fstat(dirfd, &st) == 0 ? put_entry(to, dirfd, &st, prefix, err)
					   : hr_err_sys(err, errno, "%s", prefix);
	for (i = 0; i < n; i++) {
		const char *file = list[i]->d_name;

		name = *prefix != '\0' ? hr_path_join(prefix, file) : strdup(file);
		if (name == NULL && r == 0)
			r = hr_err_nomem(err);
		if (r == 0)
			r = put_one(to, dirfd, file, name, depth, err);
		free(name);
		free(list[i]);
	}
	return r;
}

int
hr_arc_put(const struct hr_arc *to, const char *path, const char *name, const char *prefix,
    struct hr_err *err)
{
	int r;
	HR_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) != 0)
		r = hr_err_sys(err, errno, "open %s", path);
	else if (name == NULL && !S_ISDIR(st.st_mode))
		r = hr_err_sys(err, ENOTDIR, "open %s", path);
	else if (S_ISDIR(st.st_mode))
		r = put_below(to, fd, prefix, 0, err);
	else
		r = put_entry(to, fd, &st, name, err);
	return r;
}

/* ---- tar files ---- */

static int
make_tar(int fd, const char *dir, bool gzip, bool links, struct hr_err *err)
{
	const struct hr_arc to = {
	    .a = archive_write_new(), .what = "tar", .links = links, .plain = true};
	struct archive *a = to.a;
	int r = -1;

	if (a == NULL)
		(void)hr_err_nomem(err);
	else
		r = archive_write_set_format_pax_restricted(a) == ARCHIVE_OK &&
			    (!gzip || archive_write_add_filter_gzip(a) == ARCHIVE_OK) &&
			    archive_write_open_fd(a, fd) == ARCHIVE_OK
			? hr_arc_put(&to, dir, NULL, "", err)
			: hr_arc_failed(a, "tar", err);
	if (r == 0 && archive_write_close(a) != ARCHIVE_OK)
		r = hr_arc_failed(a, "tar", err);
	if (a != NULL)
		(void)archive_write_free(a);
	return r;
}

/* ---- trees ---- */

static int
to_fd(void *arg, const void *p, size_t len)
{
	return hr_fd_write_full(*(int *)arg, p, len, NULL);
}

static ssize_t
from_fd(void *arg, char *p, size_t room)
{
	return hr_fd_read(*(int *)arg, p, room);
}

static int
tree_pack(int fd, const char *path, bool owner, struct hr_tree_report *report, struct hr_err *err)
{
	const struct hr_tree_options o = {.owner = owner};
	struct hr_tree *t = hr_tree_open(path, &o, err);
	int r = t != NULL ? hr_tree_send(t, to_fd, &fd, report, err) : -1;

	if (r != 0 && t != NULL && err->code == HR_E_GONE)
		(void)hr_err_sys(err, errno, "write the archive of %s", path);
	hr_tree_free(t);
	return r;
}

static int
tree_unpack(int fd, const char *path, bool owner, struct hr_tree_report *report, struct hr_err *err)
{
	const struct hr_tree_options o = {.owner = owner};

	if (lseek(fd, 0, SEEK_SET) < 0)
		return hr_err_sys(err, errno, "rewind");
	return hr_tree_unpack(path, &o, from_fd, &fd, report, err);
}

const struct hr_archives hr_archives_module = {
    .version = HR_ARCHIVES_VERSION,
    .zip = hr_arczip_make,
    .unzip = hr_arczip_extract,
    .tar = make_tar,
    .tree_pack = tree_pack,
    .tree_unpack = tree_unpack,
};
