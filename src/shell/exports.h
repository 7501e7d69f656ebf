/* hr_exports: what a new shell is given of the variables that its predecessor exported. */
#ifndef HR_SHELL_EXPORTS_H
#define HR_SHELL_EXPORTS_H

#include <stddef.h>

#include "base/buf.h"

/* Appends of the text of `export -p` all but the prompt, whose variables are the hook's, the
 * directory, and TMOUT, which would end the new shell as it ended the old. What was read-only can
 * be changed again: it may be why the old shell had to go. Pure. */
void hr_exports_keep(const char *exports, size_t len, struct hr_buf *out);

#endif
