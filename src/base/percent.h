/* Percent-encoding, as in URIs and forms. */
#ifndef HR_BASE_PERCENT_H
#define HR_BASE_PERCENT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* -1: it is no hexadecimal digit. */
int hr_hex_value(char c);

/* Appends the bytes that p stands for, as Python's unquote: a broken escape stays as it is.
 * form: '+' stands for a blank. */
void hr_percent_decode(struct hr_buf *b, const char *p, size_t len, bool form);

#endif
