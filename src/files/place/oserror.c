/* Formats str(OSError): error texts with Python's repr of a path. */
#include "config.h"

#include "files/place/oserror.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "proto/python/repr.h"

/* Returns true for errors that write() and close() raise, and open() hardly ever. */
static bool
is_of_writing(int sys)
{
	return sys == ENOSPC || sys == EDQUOT || sys == EIO || sys == EFBIG;
}

static void
add_errno(struct hr_buf *b, int sys)
{
	hr_buf_addf(b, "[Errno %d] %s", sys, strerror(sys));
}

static void
add_path(struct hr_buf *b, const char *path, size_t len)
{
	hr_buf_adds(b, ": ");
	hr_pyrepr_str(b, path, len);
}

void
hr_oserror_add(struct hr_buf *b, int sys, const char *path, size_t len)
{
	add_errno(b, sys);
	if (!is_of_writing(sys))
		add_path(b, path, len);
}

int
hr_oserror_put(struct hr_buf *why, int sys, const char *path)
{
	hr_buf_reset(why);
	add_errno(why, sys);
	if (path != NULL)
		add_path(why, path, strlen(path));
	return -1;
}

int
hr_oserror_text(struct hr_buf *why, const char *text, const char *path)
{
	hr_buf_reset(why);
	hr_buf_adds(why, text);
	if (path != NULL)
		add_path(why, path, strlen(path));
	return -1;
}
