/* Makes tar files by libarchive. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <archive.h>

#include "base/fd.h"
#include "host/transfer/archives.h"
#include "base/err.h"

static int
nameless(struct hr_err *err)
{
	char path[] = "/tmp/handrail-tar-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	if (fd < 0)
		return hr_err_sys(err, errno, "create %s", path);
	(void)unlink(path); /* the file is unlinked, and exists as long as it is open */
	return fd;
}

int
hr_arctar_make(const char *dir, bool gzip, bool links, struct hr_err *err)
{
	const struct hr_arc to = {
	    .a = archive_write_new(), .what = "tar", .links = links, .plain = true};
	struct archive *a = to.a;
	int fd = -1, r = -1;

	if (a == NULL)
		(void)hr_err_nomem(err);
	else if ((fd = nameless(err)) >= 0)
		r = archive_write_set_format_pax_restricted(a) == ARCHIVE_OK &&
			    (!gzip || archive_write_add_filter_gzip(a) == ARCHIVE_OK) &&
			    archive_write_open_fd(a, fd) == ARCHIVE_OK
			? hr_arc_put(&to, dir, NULL, "", err)
			: hr_arc_failed(a, "tar", err);
	if (r == 0 && archive_write_close(a) != ARCHIVE_OK)
		r = hr_arc_failed(a, "tar", err);
	if (a != NULL)
		(void)archive_write_free(a);
	if (r == 0 && lseek(fd, 0, SEEK_SET) != 0)
		r = hr_err_sys(err, errno, "rewind");
	if (r != 0)
		hr_fd_close(&fd);
	return fd;
}
