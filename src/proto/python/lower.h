/* hr_pylower: implements Python's str.lower(), by which lists of files are sorted (doc/http.md,
 * "POST /list_files"). */
#ifndef HR_PROTO_PYTHON_LOWER_H
#define HR_PROTO_PYTHON_LOWER_H

#include <stddef.h>

#include "base/buf.h"

/* Appends the lower-cased text; p is valid UTF-8. Full mapping: U+0130 becomes two characters, and
 * a capital sigma at the end of a word the final small one. */
void hr_pylower(struct hr_buf *b, const char *p, size_t len);

#endif
