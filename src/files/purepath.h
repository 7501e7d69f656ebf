/* hr_purepath: handles file names as text, by the rules of doc/files.md, "Paths"; the disk is never
 * accessed. Text is generalised UTF-8 (base/text/utf8.h); bytes of a name on disk that are not
 * UTF-8 are U+DC80..U+DCFF. */
#ifndef HR_FILES_PUREPATH_H
#define HR_FILES_PUREPATH_H

#include <stddef.h>

#include "base/buf.h"
#include "base/span.h"

/* Appends the normalised form. b must not hold any part of a path yet. */
void hr_purepath_put(struct hr_buf *b, const char *p, size_t len);

/* Appends the normalised form of `base`/p; an absolute p stands alone. */
void hr_purepath_join(struct hr_buf *b, struct hr_span base, const char *p, size_t len);

/* Returns the last component's suffix from its last dot on, borrowed, or an empty span. path must
 * be normalised. */
struct hr_span hr_purepath_suffix(const char *path, size_t len);

/* Returns the name's bytes for system calls; the caller frees them. Returns NULL if no such file
 * can exist, with the text of Python's ValueError in why (unless that is NULL), or without memory,
 * when why has failed. */
char *hr_purepath_bytes(const char *p, size_t len, struct hr_buf *why);

/* Appends the text of a name on disk, the reverse of hr_purepath_bytes(). */
void hr_purepath_text(struct hr_buf *b, const char *bytes, size_t len);

#endif
