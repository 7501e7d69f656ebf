/* hr_err: fills the struct of handrail-error.h. */
#ifndef HR_BASE_ERR_H
#define HR_BASE_ERR_H

#include "handrail-error.h"

#include <stdbool.h>

/* Fills *err (which may be NULL) and returns -1, so that one writes `return hr_err_set(err,
 * HR_E_INVAL, "...");`. A message that does not fit is cut at a character. */
int hr_err_set(struct hr_err *err, enum hr_errc code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Does the same with ": strerror(sys)" appended; the code is HR_E_NOMEM for ENOMEM, HR_E_PERMISSION
 * for EACCES, else HR_E_SYS. */
int
hr_err_sys(struct hr_err *err, int sys, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Returns -1; allocates nothing, since the text is constant. */
int hr_err_nomem(struct hr_err *err);
void *hr_err_null(struct hr_err *err); /* Does the same and returns NULL. */

/* Copies the message of e under another code; HR_E_NOMEM stays. Returns -1. */
int hr_err_from(struct hr_err *err, enum hr_errc code, const struct hr_err *e);

/* Copies *e to *err (which may be NULL). Returns -1. */
int hr_err_pass(struct hr_err *err, const struct hr_err *e);

/* Puts "prefix: " before the message; NULL or an empty error stays as it is. Returns -1. */
int hr_err_prefix(struct hr_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Stops the process after a programmer's error, in release builds too. Never use it on a peer's
 * input. */
#define hr_assert(cond) ((cond) ? (void)0 : hr_assert_failed(#cond, __FILE__, __LINE__))
void hr_assert_failed(const char *cond, const char *file, int line) __attribute__((noreturn));

#endif
