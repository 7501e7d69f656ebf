/* hr_exports: lists the exported variables that a new shell inherits from its predecessor. */
#ifndef HR_SHELL_EXPORTS_H
#define HR_SHELL_EXPORTS_H

#include <stddef.h>

#include "base/buf.h"

/* Appends the text of `export -p` without the prompt's variables, which are the hook's, the
 * directory, and TMOUT, which would end the new shell as it ended the old. Read-only variables
 * become writable: they may be why the old shell had to be replaced. Pure. */
void hr_exports_keep(const char *exports, size_t len, struct hr_buf *out);

#endif
