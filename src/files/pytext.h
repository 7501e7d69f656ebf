/* hr_pytext: lines and characters as Python counts them (doc/files.md, "Text"). Texts are
 * generalised UTF-8; pure functions. */
#ifndef HR_FILES_PYTEXT_H
#define HR_FILES_PYTEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Text mode: every "\r\n" and lone "\r" of [from, len) becomes "\n", in place. */
void hr_pytext_universal(struct hr_buf *text, size_t from);

size_t hr_pytext_lines(const char *p, size_t len);    /* a last piece without "\n" is a line */
size_t hr_pytext_newlines(const char *p, size_t len); /* the number of "\n" */

/* Where line number `line` (from 0) begins; len if there are not so many. */
size_t hr_pytext_line_at(const char *p, size_t len, size_t line);

/* str.splitlines() rejoined with "\n": appends p without its last line break. */
void hr_pytext_rejoin(struct hr_buf *b, const char *p, size_t len);

/* The bytes of the first `chars` characters; len if there are not so many. */
size_t hr_pytext_prefix(const char *p, size_t len, size_t chars);

/* The length of p without white space at its end. */
size_t hr_pytext_rstrip(const char *p, size_t len);

/* list[start:end] of n items as Python clamps it: *ret_from <= *ret_to <= n. */
void hr_pytext_slice(size_t n, int64_t start, int64_t end, size_t *ret_from, size_t *ret_to);

/* int(text): blanks around it, a sign, digits with single underscores between. 0, or -1. Numbers
 * beyond 64 bits are clamped. */
int hr_pytext_int(const char *p, size_t len, int64_t *ret);

#endif
