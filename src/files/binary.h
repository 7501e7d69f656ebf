/* hr_binary: whether a file is taken for binary: doc/files.md, "Binary or not", a to f, exactly.
 *
 * libmagic gives no verdict here. It calls binary what the contract calls text (a PDF without
 * nulls) and text what the contract calls binary (one stray 0xFF in ASCII, UTF-16 without a mark,
 * dense Chinese cut at byte 1024), so asking it could only cost time: the rules look at 1024 bytes
 * once. */
#ifndef HR_FILES_BINARY_H
#define HR_FILES_BINARY_H

#include <stdbool.h>
#include <stddef.h>

#define HR_BINARY_HEAD 1024 /* bytes that count */

/* Of the first bytes of a file; len <= HR_BINARY_HEAD. Pure. */
bool hr_binary_head(const void *p, size_t len);

/* Rule a: by the name alone. */
bool hr_binary_name(const char *path, size_t len);

/* Rules b to f for a file; what cannot be opened or read is text. Never waits for a FIFO. */
bool hr_binary_file(const char *path);

#endif
