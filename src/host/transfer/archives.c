/* Loading the module, and what it does under the names that others use. */
#include "config.h"

#include "host/transfer/archives.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/common/error.h"
#include "host/common/module.h"
#include "host/transfer/tarfile.h"
#include "host/transfer/zip.h"

/* Stays loaded. NULL with *err: it is not there, or is of another version. */
static const struct hr_archives *
archives_load(struct hr_error *err)
{
	const struct hr_archives *found;
	struct hr_error why = {0};
	struct hr_module m;

	/* once it is loaded, this only counts: it stays, and nothing is kept here */
	if (hr_module_open_own(&m, HR_ARCHIVES_FILE, &why) != 0) {
		(void)hr_error_set(err, HR_ERROR_RUNTIME, "no archives: %s", why.text);
		return NULL;
	}
	found = dlsym(m.object, "hr_archives_module");
	if (found == NULL) {
		(void)hr_error_set(err, HR_ERROR_RUNTIME, "no archives: %s", dlerror());
	} else if (found->version != HR_ARCHIVES_VERSION) {
		(void)hr_error_set(err, HR_ERROR_RUNTIME, "no archives: %s has version %u, not %d",
		    HR_ARCHIVES_FILE, found->version, HR_ARCHIVES_VERSION);
		found = NULL;
	}
	if (found == NULL)
		hr_module_close(&m);
	hr_fd_close(&m.dir);
	return found;
}

char *
hr_zip_temporary(int *ret_fd, const char *dir, struct hr_error *err)
{
	char *path = NULL;

	if (asprintf(&path, "%s/handrail-XXXXXX.zip", dir != NULL ? dir : "/tmp") < 0) {
		(void)hr_error_nomem(err);
		return NULL;
	}
	*ret_fd = mkostemps(path, 4, O_CLOEXEC);
	if (*ret_fd < 0) {
		(void)hr_error_sys(err, errno, "create %s", path);
		free(path);
		return NULL;
	}
	return path;
}

char *
hr_zip_directory(const char *path, bool with_name, bool deflate, struct hr_error *err)
{
	const struct hr_archives *a = archives_load(err);
	char *file;
	int fd, rc;

	file = a != NULL ? hr_zip_temporary(&fd, NULL, err) : NULL;
	if (file == NULL)
		return NULL;
	rc = a->zip(fd, path, with_name, deflate, err);
	if (close(fd) != 0 && rc == 0)
		rc = hr_error_sys(err, errno, "write %s", file);
	if (rc != 0) {
		(void)unlink(file);
		free(file);
		file = NULL;
	}
	return file;
}

int
hr_zip_extract(const char *file, const char *dir, unsigned long long most, struct hr_error *err)
{
	const struct hr_archives *a = archives_load(err);

	return a != NULL ? a->unzip(file, dir, most, err) : -1;
}

int
hr_tarfile_make(const char *dir, bool gzip, struct hr_error *err)
{
	const struct hr_archives *a = archives_load(err);

	return a != NULL ? a->tar(dir, gzip, err) : -1;
}
