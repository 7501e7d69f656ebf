/* Loads the host library's own modules by hr_module. */
#ifndef HR_HOST_COMMON_MODULE_H
#define HR_HOST_COMMON_MODULE_H

#include "base/module.h"

/* Returns $HANDRAIL_LIBEXECDIR, or the installed directory; borrowed. */
const char *hr_module_dir(void);
/* Returns "DIR/FILE", which the caller frees; NULL without memory. */
char *hr_module_path(const char *file, struct hr_err *err);
/* Opens a module; trusts a file of the program's owner like the program. */
int hr_module_open_own(struct hr_module *m, const char *file, struct hr_err *err);

#endif
