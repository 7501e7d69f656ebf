/* Looks up properties of characters as in Python 3.11. */
#include "config.h"

#include "plugins/browser/program/pychars.h"

#include <string.h>

#include <utf8proc.h>

#ifdef HAVE_ICU
#include <unicode/uchar.h>
#endif

/* Returns a digit's value; the digits of a script are ten consecutive characters. */
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

int32_t
br_char_named(const char *name, size_t len)
{
#ifdef HAVE_ICU
	/* both choices include the corrected names */
	static const UCharNameChoice kinds[] = {U_UNICODE_CHAR_NAME, U_CHAR_NAME_ALIAS};
	char text[128];
	size_t i;

	if (len >= sizeof(text) || memchr(name, '\0', len) != NULL)
		return -1;
	memcpy(text, name, len);
	text[len] = '\0';
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		UErrorCode e = U_ZERO_ERROR;
		UChar32 c = u_charFromName(kinds[i], text, &e);

		if (U_SUCCESS(e))
			return c;
	}
#else
	(void)name;
	(void)len;
#endif
	return -1;
}
