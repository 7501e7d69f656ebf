/* Text as the reference counts and trims it: Python's white space, code points. All lengths are
 * bytes of UTF-8 unless said otherwise; bytes that are no valid UTF-8 are never white space and
 * count one code point each. */
#ifndef HR_SHELL_TEXT_H
#define HR_SHELL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* str.strip(), str.lstrip(), str.rstrip(). White space is U+0009-000D, 001C-0020, 0085, 00A0, 1680,
 * 2000-200A, 2028, 2029, 202F, 205F, 3000. The result is a part of s. */
const char *hr_shell_strip(const char *s, size_t len, size_t *ret_len);
size_t hr_shell_lstrip(const char *s, size_t len); /* bytes of white space at the start */
size_t hr_shell_rstrip(const char *s, size_t len); /* length without white space at the end */

size_t hr_shell_count(const char *s, size_t len); /* code points */

/* Code points above which the content of an observation is cut, and kept of each end (doc/shell.md,
 * "Long content"). */
#define HR_SHELL_CONTENT_MAX 30000
#define HR_SHELL_CONTENT_KEEP 15000

/* Where to cut: true if s has more than HR_SHELL_CONTENT_MAX code points; then the observation
 * shows the first *ret_head bytes, HR_SHELL_TRUNCATED, and the bytes from *ret_tail on. */
bool hr_shell_truncation(const char *s, size_t len, size_t *ret_head, size_t *ret_tail);
extern const char hr_shell_truncated_mark[];

#endif
