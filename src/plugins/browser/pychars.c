/* Characters as Python 3.11 sees them. */
#include "config.h"

#include "plugins/browser/pychars.h"

#include <utf8proc.h>

/* Digits come in tens. */
int
br_digit_value(int32_t cp)
{
	int32_t zero = cp;

	if (cp < 0x80)
		return cp >= '0' && cp <= '9' ? cp - '0' : -1;
	if (utf8proc_category(cp) != UTF8PROC_CATEGORY_ND)
		return -1;
	while (utf8proc_category(zero - 1) == UTF8PROC_CATEGORY_ND)
		zero--;
	return (cp - zero) % 10;
}
