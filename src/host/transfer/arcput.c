/* What both kinds of archives share, and the table that handrail-archives.so is. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <archive.h>
#include <archive_entry.h>

#include "base/fd.h"
#include "host/transfer/archives.h"
#include "base/err.h"

#define PIECE 65536

int
hr_arc_failed(struct archive *a, const char *what, struct hr_err *err)
{
	return hr_err_set(err, HR_E_RUNTIME, "%s: %s", what, archive_error_string(a));
}

static int
put_content(struct archive *a, int fd, const char *what, const char *name, struct hr_err *err)
{
	char *piece = malloc(PIECE);
	ssize_t n = 0;
	int rc = 0;

	if (piece == NULL)
		return hr_err_nomem(err);
	while (rc == 0 && (n = hr_fd_read(fd, piece, PIECE)) > 0)
		if (archive_write_data(a, piece, (size_t)n) != n)
			rc = hr_arc_failed(a, what, err);
	if (n < 0 && rc == 0)
		rc = hr_err_sys(err, errno, "read %s", name);
	free(piece);
	return rc;
}

int
hr_arc_put(struct archive *a, struct archive_entry *e, int fd, const char *what, const char *name,
    struct hr_err *err)
{
	if (archive_write_header(a, e) != ARCHIVE_OK)
		return hr_arc_failed(a, what, err);
	return archive_entry_filetype(e) == AE_IFREG ? put_content(a, fd, what, name, err) : 0;
}

const struct hr_archives hr_archives_module = {
    .version = HR_ARCHIVES_VERSION,
    .zip = hr_arczip_make,
    .unzip = hr_arczip_extract,
    .tar = hr_arctar_make,
};
