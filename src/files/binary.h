/* hr_binary: decides whether a file is binary: doc/files.md, "Binary or not", a to f, exactly.
 * libmagic is not asked: it calls binary what the contract calls text (a PDF without nulls) and
 * text what the contract calls binary (one stray 0xFF in ASCII, UTF-16 without a mark, dense
 * Chinese cut at byte 1024), so asking it could only cost time. The rules look at 1024 bytes
 * once. */
#ifndef HR_FILES_BINARY_H
#define HR_FILES_BINARY_H

#include <stdbool.h>
#include <stddef.h>

#define HR_BINARY_HEAD 1024 /* bytes that are examined */

/* Judges the first bytes of a file; len <= HR_BINARY_HEAD. Pure. */
bool hr_binary_head(const void *p, size_t len);

/* Applies rule a, which judges by the name alone. */
bool hr_binary_name(const char *path, size_t len);

/* Applies rules b to f to a file; an unreadable one is text. Never blocks on a FIFO. */
bool hr_binary_file(const char *path);

#endif
