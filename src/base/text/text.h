/* hr_text: texts of the heap that take each other's place. */
#ifndef HR_BASE_TEXT_TEXT_H
#define HR_BASE_TEXT_TEXT_H

#include <stddef.h>

#include "base/err.h"

/* *to, NULL or a text that the caller owns, becomes a copy of text (NULL of NULL), or what fmt
 * makes of its values; what it was is freed last, so it may be one of them. -1: no memory, and it
 * stays. */
int hr_text_set(char **to, const char *text, struct hr_err *err);
int hr_text_setf(char **to, struct hr_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Whether a word means yes, as pydantic has it: 1, 0, or -1 of any other text. */
int hr_text_truth(const char *p, size_t len);

/* Python's int(): blanks around it, a sign, digits with single underscores between. 0 or -1. */
int hr_text_python_int(const char *text, long long *ret);

#endif
