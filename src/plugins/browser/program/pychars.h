/* What Python says of characters. */
#ifndef HR_PLUGINS_BROWSER_PROGRAM_PYCHARS_H
#define HR_PLUGINS_BROWSER_PROGRAM_PYCHARS_H

#include <stddef.h>
#include <stdint.h>

int br_digit_value(int32_t cp); /* of a decimal digit of any script; -1: it is none */
/* The character that Unicode calls so, in letters of any case; -1: none, or handrail was built
 * without ICU, which has the names. */
int32_t br_char_named(const char *name, size_t len);

#endif
