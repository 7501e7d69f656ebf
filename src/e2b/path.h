/* hr_e2b_path: the paths that clients send. Pure. */
#ifndef HR_E2B_PATH_H
#define HR_E2B_PATH_H

#include "base/buf.h"
#include "base/span.h"
#include "e2b/who.h"

#define HR_E2B_PATH_MAX (64u << 10)

/* Appends the absolute, cleaned form of a path: an empty one is the default directory (NULL: the
 * home), "~" is the home, and other relative ones begin there. Returns 0, or -1 with the reason in
 * `why`. */
int hr_e2b_path(struct hr_buf *ret, struct hr_span path, const struct hr_e2b_who *who,
    const char *directory, struct hr_buf *why);

/* Appends an absolute path without ".", "..", empty components and a slash at the end; looks at no
 * disk. */
void hr_e2b_path_clean(struct hr_buf *ret, const char *path);

#endif
