/* What Python says of characters. */
#ifndef HR_PLUGINS_BROWSER_PYCHARS_H
#define HR_PLUGINS_BROWSER_PYCHARS_H

#include <stdint.h>

int br_digit_value(int32_t cp); /* of a decimal digit of any script; -1: it is none */

#endif
