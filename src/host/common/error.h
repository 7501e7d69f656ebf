/* The public error, filled from inside. */
#ifndef HR_HOST_COMMON_ERROR_H
#define HR_HOST_COMMON_ERROR_H

#include "base/err.h"
#include "host/handrail.h"

/* Each returns -1. err may be NULL. */
int hr_error_set(struct hr_error *err, enum hr_error_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int hr_error_sys(struct hr_error *err, int sys, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
int hr_error_nomem(struct hr_error *err);
/* An error of the modules below; NOMEM stays what it is, everything else becomes `code`. */
int hr_error_from(struct hr_error *err, enum hr_error_code code, const struct hr_err *e);

#endif
