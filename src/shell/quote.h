/* Quotes words for sh. */
#ifndef HR_SHELL_QUOTE_H
#define HR_SHELL_QUOTE_H

#include "base/buf.h"

/* Appends s as one word that any POSIX shell reads back byte for byte: as hr_quote_shell() of base,
 * unless it consists of letters, digits and @%+=:,./-_ only. s must not contain NUL. */
void hr_shell_quote(struct hr_buf *b, const char *s, size_t len);

#endif
