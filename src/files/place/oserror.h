/* hr_oserror: formats the texts of Python's OSError, which the contract's responses show
 * (doc/http.md, "Error answers"). */
#ifndef HR_FILES_PLACE_OSERROR_H
#define HR_FILES_PLACE_OSERROR_H

#include <stddef.h>

#include "base/buf.h"

/* Appends "[Errno 2] No such file or directory: '/a'"; path is generalised UTF-8. The name is left
 * out where Python has none: for errors of writing to an open file, such as a full disk. */
void hr_oserror_add(struct hr_buf *b, int sys, const char *path, size_t len);

/* Replaces the content of why by such a text; the name is always shown, unless path is NULL.
 * Returns -1. */
int hr_oserror_put(struct hr_buf *why, int sys, const char *path);

/* Replaces the content of why by handrail's own text, with ": " and the repr of path unless it is
 * NULL. Returns -1. */
int hr_oserror_text(struct hr_buf *why, const char *text, const char *path);

#endif
