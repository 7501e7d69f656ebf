/* box_size: counts the files of boxes, which belong to all accounts of a box. */
#ifndef HR_BOX_SIZE_H
#define HR_BOX_SIZE_H

#include "base/err.h"

/* Prints {"files": N, "bytes": N} for all directories of a list that ends with NULL, as the root of
 * a box of this account. Returns 0, or -1 with *err. */
int box_size(const char *const *paths, struct hr_err *err);

#endif
