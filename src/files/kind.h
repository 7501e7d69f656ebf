/* hr_kind: what some bytes are, in libmagic's words, for a person or an agent who is told that a
 * file cannot be shown.
 *
 * Only for words: no verdict depends on it. For text or binary the contract has rules of its own,
 * from which libmagic's differ (files/binary.h). So its database is not loaded before it is asked
 * for the first time in a process: a map of a file that all workers share, 0.2 ms and some 350 KB
 * of its own. */
#ifndef HR_FILES_KIND_H
#define HR_FILES_KIND_H

#include <stddef.h>

#include "base/buf.h"

/* Appends "PNG image data, 16 x 16, ..."; nothing if libmagic or its database is not to be had. */
void hr_kind_describe(struct hr_buf *b, const void *p, size_t len);

#endif
