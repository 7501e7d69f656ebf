/* What Python says of characters. */
#ifndef HR_PLUGINS_BROWSER_PYCHARS_H
#define HR_PLUGINS_BROWSER_PYCHARS_H

#include <stdbool.h>
#include <stdint.h>

bool br_is_space(int32_t cp);   /* str.isspace(), and \s of its regular expressions */
int br_digit_value(int32_t cp); /* of a decimal digit of any script; -1: it is none */

#endif
