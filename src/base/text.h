/* hr_text: texts of the heap that take each other's place. */
#ifndef HR_BASE_TEXT_H
#define HR_BASE_TEXT_H

#include "base/err.h"

/* *to becomes a copy of text, or NULL of NULL; what it was is freed, if there is memory for it. */
int hr_text_set(char **to, const char *text, struct hr_err *err);
int hr_text_setf(char **to, struct hr_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
