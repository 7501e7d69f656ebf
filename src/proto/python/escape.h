/* hr_pyescape: decodes the text between the quotes of a Python string literal. */
#ifndef HR_PROTO_PYTHON_ESCAPE_H
#define HR_PROTO_PYTHON_ESCAPE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Returns the character of \N{NAME}; -1: no character has that name. */
typedef int32_t hr_pynamed_fn(const char *name, size_t len);

/* Appends the characters of p, whose line ends must be LF and which must not end with an unescaped
 * backslash. named NULL: no character has a name. Returns 0, or 1 with Python's error appended to
 * why. */
int hr_pyescape(
    struct hr_buf *out, const char *p, size_t len, hr_pynamed_fn *named, struct hr_buf *why);

#endif
