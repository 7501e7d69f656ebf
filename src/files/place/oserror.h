/* hr_oserror: the texts of Python's OSError, which the contract's answers show (doc/http.md, "Error
 * answers"). */
#ifndef HR_FILES_PLACE_OSERROR_H
#define HR_FILES_PLACE_OSERROR_H

#include <stddef.h>

#include "base/buf.h"

/* Appends "[Errno 2] No such file or directory: '/a'"; path is generalised UTF-8. The name is left
 * out where Python has none: errors that come from writing to a file that is open, like a full
 * disk. */
void hr_oserror_add(struct hr_buf *b, int sys, const char *path, size_t len);

/* Replaces what why holds by such a text, always with the name; path NULL: without it. Returns -1.
 */
int hr_oserror_put(struct hr_buf *why, int sys, const char *path);

/* Replaces it by a text of our own, with the repr of path behind ": " if path is not NULL. -1. */
int hr_oserror_text(struct hr_buf *why, const char *text, const char *path);

#endif
