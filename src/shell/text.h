/* hr_shell_count: measures text as the reference does, in code points. All other lengths are bytes
 * of UTF-8; each byte that is not valid UTF-8 counts one code point. */
#ifndef HR_SHELL_TEXT_H
#define HR_SHELL_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

size_t hr_shell_count(const char *s, size_t len); /* Returns the number of code points. */

/* An observation's content of more code points than this is cut, and so many are kept at each end
 * (doc/shell.md, "Long content"). */
#define HR_SHELL_CONTENT_MAX 30000
#define HR_SHELL_CONTENT_KEEP 15000

/* Computes the cut: returns true if s has more than HR_SHELL_CONTENT_MAX code points; then the
 * observation shows the first *ret_head bytes, HR_SHELL_TRUNCATED, and the bytes from *ret_tail
 * on. */
bool hr_shell_truncation(const char *s, size_t len, size_t *ret_head, size_t *ret_tail);
extern const char hr_shell_truncated_mark[];

#endif
