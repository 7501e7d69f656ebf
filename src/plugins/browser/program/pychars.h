/* Looks up properties of characters as in Python. */
#ifndef HR_PLUGINS_BROWSER_PROGRAM_PYCHARS_H
#define HR_PLUGINS_BROWSER_PROGRAM_PYCHARS_H

#include <stddef.h>
#include <stdint.h>

int br_digit_value(int32_t cp); /* Returns the value of any script's decimal digit; -1: no digit. */
/* Returns the character with this Unicode name, in any case; -1 if there is none, or in a build
 * without ICU, which has the names. */
int32_t br_char_named(const char *name, size_t len);

#endif
