/* Encodes and decodes percent-encoding, as in URIs and forms. */
#ifndef HR_BASE_TEXT_PERCENT_H
#define HR_BASE_TEXT_PERCENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Returns the digit's value; -1: not a hexadecimal digit. */
int hr_hex_value(char c);
/* Returns the value of four digits; -1: not all are hexadecimal. */
int32_t hr_hex4(const char *p);

/* Appends p as Python's quote(): letters, digits and the characters of `safe` stay. */
void hr_percent_encode(struct hr_buf *b, const char *p, const char *safe);

/* Appends the decoded bytes, as Python's unquote(): a broken escape stays as it is. form: '+' means
 * a blank. */
void hr_percent_decode(struct hr_buf *b, const char *p, size_t len, bool form);

#endif
