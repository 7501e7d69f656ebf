/* hr_pytext: counts lines and characters as Python does (doc/files.md, "Text"). Text is generalised
 * UTF-8; all functions are pure. */
#ifndef HR_FILES_PYTEXT_H
#define HR_FILES_PYTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Changes every "\r\n" and lone "\r" of [from, len) to "\n" in place, as text mode does. */
void hr_pytext_universal(struct hr_buf *text, size_t from);

/* Counts lines; a last line may lack its "\n". */
size_t hr_pytext_lines(const char *p, size_t len);
size_t hr_pytext_newlines(const char *p, size_t len); /* Counts the "\n". */

/* Returns the offset of line number `line` (from 0), or len if there are fewer lines. */
size_t hr_pytext_line_at(const char *p, size_t len, size_t line);

/* Appends "\n".join(p.splitlines()): p without its last line break. */
void hr_pytext_rejoin(struct hr_buf *b, const char *p, size_t len);

/* Returns the bytes of the first `chars` characters, or len if there are fewer. */
size_t hr_pytext_prefix(const char *p, size_t len, size_t chars);

/* Returns the length of p without trailing white space. */
size_t hr_pytext_rstrip(const char *p, size_t len);

/* Clamps list[start:end] of n items as Python does: *ret_from <= *ret_to <= n. */
void hr_pytext_slice(size_t n, int64_t start, int64_t end, size_t *ret_from, size_t *ret_to);

/* Parses as int(text): surrounding blanks, a sign, at most 4,300 digits with single underscores
 * between. Returns 0 or -1. Numbers beyond 64 bits are clamped. */
int hr_pytext_int(const char *p, size_t len, int64_t *ret);

/* Returns the value of a decimal digit of any script, or -1. */
int hr_pytext_digit(int32_t cp);

#endif
