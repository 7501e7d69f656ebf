/* Floating-point numbers as Python reads them. */
#ifndef HR_SHELL_PYFLOAT_H
#define HR_SHELL_PYFLOAT_H

#include <stddef.h>

#include "base/err.h"

/* float(s): white space around it, a sign, digits with single underscores between digits, a
 * fraction, an exponent, inf, infinity and nan in any case. Digits of other scripts, which Python
 * knows as well, are not read. -1: HR_E_INVAL where Python would raise ValueError, or HR_E_NOMEM.
 * Assumes the C locale's point. */
int hr_pyfloat_parse(const char *s, size_t len, double *ret, struct hr_err *err);

#endif
