/* hr_dirhash: hashes a directory's content by names and bytes, as Python's dirhash 0.5.0 does with
 * MD5 (doc/images.md, "The source hash"). Modes, times and owners do not count; links are
 * followed. */
#ifndef HR_IMAGE_DIRHASH_H
#define HR_IMAGE_DIRHASH_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "image/digest.h"

/* Patterns for components of the path below the root, with '*': one that ends in '/' is tested
 * against the directories on the path, any other against all components. NULL-terminated. */
/* the patterns that also ignore build products of C */
extern const char *const hr_dirhash_ignore_c[];

/* Returns true if this component is left out. */
bool hr_dirhash_ignored(const char *const *ignore, const char *name, bool is_dir);

/* Hashes a directory. *included (may be NULL) gets the relative path of each hashed file, with NUL
 * after each. Errors: HR_E_INVAL for a name that is not UTF-8, a symbolic link to a parent
 * directory, or nothing to hash; HR_E_TOOLARGE for directories nested deeper than
 * HR_DIRHASH_DEPTH. */
#define HR_DIRHASH_DEPTH 256
int hr_dirhash(const char *dir, const char *const *ignore, struct hr_buf *included,
    char ret[HR_DIGEST_HEX], struct hr_err *err);

#endif
