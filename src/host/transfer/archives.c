/* Loads the module, and calls its functions for other files. */
#include "config.h"

#include "host/transfer/archives.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/path.h"
#include "host/common/module.h"
#include "host/transfer/tarfile.h"
#include "host/transfer/zip.h"

static const struct hr_archives *
archives_load(struct hr_err *err)
{
	struct hr_err why = {0};
	const void *found = hr_module_load(
	    hr_module_dir(), HR_ARCHIVES_FILE, "hr_archives_module", HR_ARCHIVES_VERSION, &why);

	if (found == NULL)
		(void)hr_err_set(err, HR_E_RUNTIME, "no archives: %s", why.msg);
	return found;
}

char *
hr_zip_temporary(int *ret_fd, const char *dir, struct hr_err *err)
{
	char *path = NULL;

	if (asprintf(&path, "%s/handrail-XXXXXX.zip", dir != NULL ? dir : "/tmp") < 0)
		return hr_err_null(err);
	*ret_fd = mkostemps(path, 4, O_CLOEXEC);
	if (*ret_fd < 0) {
		(void)hr_err_sys(err, errno, "create %s", path);
		free(path);
		return NULL;
	}
	return path;
}

char *
hr_zip_directory(const char *path, bool with_name, bool deflate, struct hr_err *err)
{
	const struct hr_archives *a = archives_load(err);
	char *file;
	int fd, r;

	file = a != NULL ? hr_zip_temporary(&fd, NULL, err) : NULL;
	if (file == NULL)
		return NULL;
	r = a->zip(fd, path, with_name, deflate, err);
	if (close(fd) != 0 && r == 0)
		r = hr_err_sys(err, errno, "write %s", file);
	if (r != 0) {
		(void)unlink(file);
		free(file);
		file = NULL;
	}
	return file;
}

int
hr_zip_extract(const char *file, const char *dir, unsigned long long most, struct hr_err *err)
{
	const struct hr_archives *a = archives_load(err);

	return a != NULL ? a->unzip(file, dir, most, err) : -1;
}

int
hr_archives_unlinked(const char *dir, struct hr_err *err)
{
	HR_FREE char *path =
	    hr_path_join(dir != NULL && *dir != '\0' ? dir : "/tmp", "handrail-XXXXXX");
	int fd;

	if (path == NULL)
		return hr_err_nomem(err);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return hr_err_sys(err, errno, "create %s", path);
	(void)unlink(path);
	return fd;
}

int
hr_tarfile_make(const char *dir, bool gzip, bool links, struct hr_err *err)
{
	const struct hr_archives *a = archives_load(err);
	int fd = a != NULL ? hr_archives_unlinked(NULL, err) : -1, r = -1;

	if (fd >= 0)
		r = a->tar(fd, dir, gzip, links, err);
	if (r == 0 && lseek(fd, 0, SEEK_SET) != 0)
		r = hr_err_sys(err, errno, "rewind");
	if (r != 0)
		hr_fd_close(&fd);
	return fd;
}

int
hr_treefile_pack(
    int fd, const char *path, bool owner, struct hr_tree_report *report, struct hr_err *err)
{
	const struct hr_archives *a = archives_load(err);

	return a != NULL ? a->tree_pack(fd, path, owner, report, err) : -1;
}

int
hr_treefile_unpack(
    int fd, const char *path, bool owner, struct hr_tree_report *report, struct hr_err *err)
{
	const struct hr_archives *a = archives_load(err);

	return a != NULL ? a->tree_unpack(fd, path, owner, report, err) : -1;
}
