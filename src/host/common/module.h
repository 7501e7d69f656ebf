/* hr_module for the host library's own modules. */
#ifndef HR_HOST_COMMON_MODULE_H
#define HR_HOST_COMMON_MODULE_H

#include "base/module.h"

/* Returns $HANDRAIL_LIBEXECDIR, or the installed directory. Borrowed. */
const char *hr_module_dir(void);
/* Returns "DIR/FILE"; the caller frees it. NULL: out of memory. */
char *hr_module_path(const char *file, struct hr_err *err);
/* Opens a module; trusts a file of the program's owner like the program. */
int hr_module_open_own(struct hr_module *m, const char *file, struct hr_err *err);

#endif
