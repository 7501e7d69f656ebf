/* hr_echo: recognises typed text in the form in which a terminal, or readline, echoes it. */
#ifndef HR_SESSION_VIEW_ECHO_H
#define HR_SESSION_VIEW_ECHO_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Returns the number of bytes at the start of `text` (lines without trailing blanks) that are
 * `typed` as a terminal shows it: any blanks and line ends for typed ones, ^X for control
 * characters, nothing for invisible ones. 0: the text does not match. */
size_t hr_echo_length(const char *text, size_t len, const char *typed, size_t typed_len);

/* Removes the echo from bytes that came while readline echoed a pasted line, until it left the
 * terminal: appends to *rest the output of other processes (background jobs) in between, in order.
 * Returns false, appending nothing, if the echo is not recognisable: long lines, characters that
 * readline shows in other ways or draws twice, another width of the terminal, control characters of
 * others. */
bool hr_echo_remove(
    const char *bytes, size_t len, const char *typed, size_t typed_len, struct hr_buf *rest);

#endif
