/* What the original server does to a command before typing it into tmux: doubling the backslash
 * before ; & | < > outside quotes. Kept to document and check that behaviour. It damages commands:
 * nothing may call it on the way to a shell. */
#ifndef HR_SHELL_ESCAPE_H
#define HR_SHELL_ESCAPE_H

#include <stddef.h>

#include "base/err.h"

/* NUL-terminated, the caller frees; *ret_len may be NULL. A text that cannot be parsed, or holds no
 * command, comes back unchanged. NULL: HR_E_NOMEM, or HR_E_TOOLARGE where the repetitions of many
 * here-documents on one line add up to more than 16 times the text and 1 MiB. */
char *hr_shell_escape(const char *text, size_t len, size_t *ret_len, struct hr_err *err);

#endif
