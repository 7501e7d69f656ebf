/* hr_echo: what a terminal, or readline, makes of typed text. */
#ifndef HR_SESSION_VIEW_ECHO_H
#define HR_SESSION_VIEW_ECHO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* How many bytes at the start of `text` (lines without blanks at their ends) are `typed` as a
 * terminal shows it: any blanks and line ends for those that were typed, ^X for control characters,
 * nothing for what it does not show. 0: they are not. */
size_t hr_echo_length(const char *text, size_t len, const char *typed, size_t typed_len);

/* Bytes that came while readline echoed a pasted line, up to where it left the terminal: appends to
 * *rest what others (background jobs) printed in between, in order. False, and nothing appended,
 * where the echo is not to be recognised: long lines, characters that readline shows in other ways
 * or draws twice, another width of the terminal, control characters of others. */
bool hr_echo_remove(
    const char *bytes, size_t len, const char *typed, size_t typed_len, struct hr_buf *rest);

#endif
