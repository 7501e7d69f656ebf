/* hr_module: a shared object of ours that lies beside the programs and is loaded by the first
 * request that needs it: the libraries behind it would be in every worker otherwise. It exports one
 * struct, whose first member is `unsigned version`. */
#ifndef HR_FILES_MODULE_H
#define HR_FILES_MODULE_H

#include "base/err.h"

/* The struct named symbol in directory/file. NULL: it cannot be loaded, or is of another version.
 * What was loaded stays until the process ends. Not for threads. */
const void *hr_module_load(const char *directory, const char *file, const char *symbol,
    unsigned version, struct hr_err *err);

#endif
