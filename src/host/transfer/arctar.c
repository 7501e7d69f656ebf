/* Tar files by libarchive. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

#define DEPTH_MAX 256

static int
put_entry(struct archive *a, int fd, const struct stat *st, const char *name, struct hr_err *err)
{
	struct archive_entry *e = archive_entry_new();
	int rc;

	if (e == NULL)
		return hr_err_nomem(err);
	archive_entry_set_pathname(e, name);
	archive_entry_set_filetype(e, S_ISDIR(st->st_mode) ? AE_IFDIR : AE_IFREG);
	archive_entry_set_perm(e, S_ISDIR(st->st_mode) || (st->st_mode & 0100) != 0 ? 0755 : 0644);
	archive_entry_set_mtime(e, 0, 0);
	if (S_ISREG(st->st_mode))
		archive_entry_set_size(e, st->st_size);
	rc = hr_arc_put(a, e, fd, "tar", name, err);
	archive_entry_free(e);
	return rc;
}

static int
put_tree(struct archive *a, int dirfd, const char *prefix, int depth, struct hr_err *err);

static int
put_one(struct archive *a, int dirfd, const char *file, const char *prefix, int depth,
    struct hr_err *err)
{
	char *name = *prefix != '\0' ? hr_path_join(prefix, file) : strdup(file);
	int fd = openat(dirfd, file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), rc;
	struct stat st;

	if (name == NULL)
		rc = hr_err_nomem(err);
	else if (fd < 0 || fstat(fd, &st) != 0)
		rc = hr_err_sys(err, errno, "open %s", name);
	else if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		rc = 0;
	else if ((rc = put_entry(a, fd, &st, name, err)) == 0 && S_ISDIR(st.st_mode))
		rc = put_tree(a, fd, name, depth + 1, err);
	hr_fd_close(&fd);
	free(name);
	return rc;
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
put_tree(struct archive *a, int dirfd, const char *prefix, int depth, struct hr_err *err)
{
	struct dirent **list = NULL;
	int n = scandirat(dirfd, ".", &list, no_dots, by_name), rc = 0;

	if (n < 0)
		return hr_err_sys(err, errno, "read %s", prefix);
	if (depth > DEPTH_MAX)
		rc = hr_err_set(err, HR_E_INVAL, "%s: nested too deep", prefix);
	for (int i = 0; i < n; i++) {
		if (rc == 0)
			rc = put_one(a, dirfd, list[i]->d_name, prefix, depth, err);
		free(list[i]);
	}
	free(list);
	return rc;
}

static int
nameless(struct hr_err *err)
{
	char path[] = "/tmp/handrail-tar-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd < 0)
		return hr_err_sys(err, errno, "create %s", path);
	(void)unlink(path); /* it lives as long as it is open */
	return fd;
}

int
hr_arctar_make(const char *dir, bool gzip, struct hr_err *err)
{
	struct archive *a = archive_write_new();
	int top = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1, rc = -1;

	if (a == NULL)
		(void)hr_err_nomem(err);
	else if (top < 0)
		(void)hr_err_sys(err, errno, "open %s", dir);
	else if ((fd = nameless(err)) >= 0)
		rc = archive_write_set_format_pax_restricted(a) == ARCHIVE_OK &&
			     (!gzip || archive_write_add_filter_gzip(a) == ARCHIVE_OK) &&
			     archive_write_open_fd(a, fd) == ARCHIVE_OK
			 ? put_tree(a, top, "", 0, err)
			 : hr_arc_failed(a, "tar", err);
	if (rc == 0 && archive_write_close(a) != ARCHIVE_OK)
		rc = hr_arc_failed(a, "tar", err);
	if (a != NULL)
		(void)archive_write_free(a);
	hr_fd_close(&top);
	if (rc == 0 && lseek(fd, 0, SEEK_SET) != 0)
		rc = hr_err_sys(err, errno, "rewind");
	if (rc != 0)
		hr_fd_close(&fd);
	return fd;
}
