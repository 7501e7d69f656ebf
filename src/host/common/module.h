/* hr_module of the host side: where the library's own are. */
#ifndef HR_HOST_COMMON_MODULE_H
#define HR_HOST_COMMON_MODULE_H

#include "base/module.h"

/* $HANDRAIL_LIBEXECDIR, or where they were installed. Borrowed. */
const char *hr_module_dir(void);
/* "DIR/FILE"; the caller frees. NULL: no memory. */
char *hr_module_path(const char *file, struct hr_err *err);
/* What belongs to the program's owner is as good as the program. */
int hr_module_open_own(struct hr_module *m, const char *file, struct hr_err *err);

#endif
