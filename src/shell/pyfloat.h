/* Floating-point numbers as Python writes and reads them. */
#ifndef HR_SHELL_PYFLOAT_H
#define HR_SHELL_PYFLOAT_H

#include "base/buf.h"

/* Appends repr(d): the shortest text that reads back as d, with a fraction or an exponent: 5.0,
 * 0.1, 1e-05, 1e+16, 120.0, inf, nan. */
void hr_pyfloat(struct hr_buf *b, double d);

/* float(s): white space around it, a sign, digits with single underscores between digits, a
 * fraction, an exponent, inf, infinity and nan in any case. Digits of other scripts, which Python
 * knows as well, are not read. -1: HR_E_INVAL where Python would raise ValueError, or HR_E_NOMEM.
 * Assumes the C locale's point. */
int hr_pyfloat_parse(const char *s, size_t len, double *ret, struct hr_err *err);

#endif
