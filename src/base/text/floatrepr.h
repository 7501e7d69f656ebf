/* Writes floating-point numbers as Python's repr() does. */
#ifndef HR_BASE_TEXT_FLOATREPR_H
#define HR_BASE_TEXT_FLOATREPR_H

#include "base/buf.h"

/* Appends the shortest text that reads back as d, with a fraction or an exponent: 5.0, 0.1, 1e-05,
 * 1e+16, 120.0, inf, nan. Requires the C locale's decimal point. */
void hr_float_repr(struct hr_buf *b, double d);

#endif
