/* hr_module: shared objects of our own, which are loaded at first use because of the libraries they
 * bring along. */
#ifndef HR_HOST_MODULE_H
#define HR_HOST_MODULE_H

#include "host/handrail.h"

/* $HANDRAIL_LIBEXECDIR, or where they were installed. Borrowed. */
const char *hr_module_dir(void);
/* Where it is: in that directory. The caller frees. */
char *hr_module_path(const char *file, struct hr_error *err);

#endif
