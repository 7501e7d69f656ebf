/* Packs and unpacks trees as tar files, in the module with libarchive. */
#include "config.h"

#include <errno.h>
#include <unistd.h>

#include "base/fd.h"
#include "host/transfer/archives.h"

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

int
hr_arctree_pack(
    int fd, const char *path, bool owner, struct hr_tree_report *report, struct hr_err *err)
{
	const struct hr_tree_options o = {.owner = owner};
	struct hr_tree *t = hr_tree_open(path, &o, err);
	int r = t != NULL ? hr_tree_send(t, to_fd, &fd, report, err) : -1;

	if (r != 0 && t != NULL && err->code == HR_E_GONE)
		(void)hr_err_sys(err, errno, "write the archive of %s", path);
	hr_tree_free(t);
	return r;
}

int
hr_arctree_unpack(
    int fd, const char *path, bool owner, struct hr_tree_report *report, struct hr_err *err)
{
	const struct hr_tree_options o = {.owner = owner};

	if (lseek(fd, 0, SEEK_SET) < 0)
		return hr_err_sys(err, errno, "rewind");
	return hr_tree_unpack(path, &o, from_fd, &fd, report, err);
}
