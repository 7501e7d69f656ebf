/* hr_text: replaces strings on the heap. */
#ifndef HR_BASE_TEXT_TEXT_H
#define HR_BASE_TEXT_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* Replaces *to (NULL or a string that the caller owns) by a copy of text (NULL for NULL), or by the
 * formatted string; the old string is freed last, so it may be an argument. Returns -1 without
 * memory, with *to unchanged. */
int hr_text_set(char **to, const char *text, struct hr_err *err);
int hr_text_setf(char **to, struct hr_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Replaces each byte that is no printable character of ASCII, which a terminal could obey, by
 * '?'. */
void hr_text_plain(char *text);

/* Parses a truth value as pydantic does. Returns 1, 0, or -1 for any other text. */
int hr_text_truth(const char *p, size_t len);

/* Returns true if the authority of a URL, "HOST[:PORT]" before its end or a '/', is this machine by
 * a name that nobody else answers to: localhost, 127.0.0.1 or [::1]. */
bool hr_text_is_here(const char *authority);

/* Parses an integer as Python's int(): surrounding blanks, a sign, digits with single underscores
 * between. Returns 0 or -1. */
int hr_text_python_int(const char *text, long long *ret);

#endif
