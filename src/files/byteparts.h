/* hr_byteparts: sends several ranges of an open file as multipart/byteranges. */
#ifndef HR_FILES_BYTEPARTS_H
#define HR_FILES_BYTEPARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "proto/httperr.h"

struct hr_bytepart {
	off_t from, len;
};

/* Takes *fd, a file of `size` bytes and that type, and sets the stream of the parts. The bytes
 * between them are those of Go's mime/multipart or, if `starlette`, of Starlette's FileResponse.
 * Returns the Content-Type, which is valid until the next call, or NULL if memory runs out; *fd
 * stays the caller's then. */
const char *hr_byteparts_start(int *fd, off_t size, const char *type,
    const struct hr_bytepart *parts, size_t n, bool starlette, struct hr_stream *ret);

#endif
