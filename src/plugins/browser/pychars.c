/* Characters as Python 3.11 sees them. */
#include "config.h"

#include "plugins/browser/pychars.h"

#include <utf8proc.h>

bool
br_is_space(int32_t cp)
{
	if (cp < 0x80)
		return cp == ' ' || (cp >= 0x09 && cp <= 0x0D) || (cp >= 0x1C && cp <= 0x1F);
	return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) ||
	       cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

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
