/* hr_purepath: names of files as texts, by the rules of doc/files.md, "Paths": nothing looks at the
 * disk. Texts are generalised UTF-8 (base/text/utf8.h); a name on the disk that is no UTF-8 has its
 * bytes as U+DC80..U+DCFF. */
#ifndef HR_FILES_PUREPATH_H
#define HR_FILES_PUREPATH_H

#include <stddef.h>

#include "base/buf.h"
#include "base/span.h"

/* Appends the normalised form. b must hold nothing else of a path yet. */
void hr_purepath_put(struct hr_buf *b, const char *p, size_t len);

/* The same of `base`/p; an absolute p stands alone. */
void hr_purepath_join(struct hr_buf *b, struct hr_span base, const char *p, size_t len);

/* The last component's ending from its last dot on, borrowed; empty if it has none. path must be
 * normalised. */
struct hr_span hr_purepath_suffix(const char *path, size_t len);

/* The bytes of the name for system calls; the caller frees. NULL: there can be no such file (or no
 * memory: why has failed), and why, unless NULL, gets the text of Python's ValueError. */
char *hr_purepath_bytes(const char *p, size_t len, struct hr_buf *why);

/* The other way: appends the text of a name on the disk. */
void hr_purepath_text(struct hr_buf *b, const char *bytes, size_t len);

#endif
