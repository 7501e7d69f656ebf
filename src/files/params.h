/* hr_params: the parameters of a header such as Content-Type or Content-Disposition, as Python's
 * email package reads them (it does so for the original). Pure. */
#ifndef HR_FILES_PARAMS_H
#define HR_FILES_PARAMS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* The value of parameter `name` (lower case) of the header's len bytes, appended to ret without its
 * quotes; of repeated ones the last. "name*=charset'language'%xx" comes before "name=". false:
 * there is none. Continuations (name*0=) are not known: no client sends them. */
bool hr_params_get(const char *header, size_t len, const char *name, struct hr_buf *ret);

#endif
