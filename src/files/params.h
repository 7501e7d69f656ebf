/* hr_params: reads the parameters of a header such as Content-Type or Content-Disposition, as
 * Python's email package does for the original. Pure. */
#ifndef HR_FILES_PARAMS_H
#define HR_FILES_PARAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Appends the value of parameter `name` (lower case) of the header to ret, without its quotes; the
 * last of repeated ones counts. "name*=charset'language'%xx" takes precedence over "name=". Returns
 * false if there is none. Continuations (name*0=) are not supported: no client sends them. */
bool hr_params_get(const char *header, size_t len, const char *name, struct hr_buf *ret);

#endif
