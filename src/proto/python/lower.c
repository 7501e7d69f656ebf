/* Lower-cases by code point, with the only two rules that need context: U+0130 and the final sigma
 * (CPython's do_lower() and handle_capital_sigma()). */
#include "config.h"

#include "proto/python/lower.h"

#include <stdbool.h>

#include <utf8proc.h>

#include "base/text/utf8.h"

/* Word_Break MidLetter, MidNumLet and Single_Quote, which are Case_Ignorable besides the
 * categories. */
static const int32_t ignorable[] = {0x27, 0x2E, 0x3A, 0xB7, 0x387, 0x55F, 0x5F4, 0x2018, 0x2019,
    0x2024, 0x2027, 0xFE13, 0xFE52, 0xFE55, 0xFF07, 0xFF0E, 0xFF1A};

/* Other_Lowercase and Other_Uppercase, which are Cased besides the letters with case. */
static const struct {
	int32_t first, last;
} cased[] = {{0xAA, 0xAA}, {0xBA, 0xBA}, {0x2B0, 0x2B8}, {0x2C0, 0x2C1}, {0x2E0, 0x2E4},
    {0x345, 0x345}, {0x37A, 0x37A}, {0x1D2C, 0x1D6A}, {0x1D78, 0x1D78}, {0x1D9B, 0x1DBF},
    {0x2071, 0x2071}, {0x207F, 0x207F}, {0x2090, 0x209C}, {0x2160, 0x217F}, {0x24B6, 0x24E9},
    {0x2C7C, 0x2C7D}, {0xA69C, 0xA69D}, {0xA770, 0xA770}, {0xA7F8, 0xA7F9}, {0xAB5C, 0xAB5F},
    {0x1F130, 0x1F149}, {0x1F150, 0x1F169}, {0x1F170, 0x1F189}};

static bool
is_ignorable(int32_t cp)
{
	size_t i;

	switch (utf8proc_category(cp)) {
	case UTF8PROC_CATEGORY_MN:
	case UTF8PROC_CATEGORY_ME:
	case UTF8PROC_CATEGORY_CF:
	case UTF8PROC_CATEGORY_LM:
	case UTF8PROC_CATEGORY_SK: return true;
	default: break;
	}
	for (i = 0; i < sizeof(ignorable) / sizeof(ignorable[0]); i++)
		if (ignorable[i] == cp)
			return true;
	return false;
}

static bool
is_cased(int32_t cp)
{
	size_t i;

	switch (utf8proc_category(cp)) {
	case UTF8PROC_CATEGORY_LU:
	case UTF8PROC_CATEGORY_LL:
	case UTF8PROC_CATEGORY_LT: return true;
	default: break;
	}
	for (i = 0; i < sizeof(cased) / sizeof(cased[0]); i++)
		if (cp >= cased[i].first && cp <= cased[i].last)
			return true;
	return false;
}

static bool
cased_before(const char *start, const char *p, const char *end)
{
	size_t n;
	int32_t cp;

	while (p > start) {
		do
			p--;
		while (p > start && ((unsigned char)*p & 0xC0) == 0x80);
		cp = hr_utf8_next(p, end, &n);
		if (!is_ignorable(cp))
			return is_cased(cp);
	}
	return false;
}

static bool
cased_after(const char *p, const char *end)
{
	size_t n;
	int32_t cp;

	for (; p < end; p += n) {
		cp = hr_utf8_next(p, end, &n);
		if (!is_ignorable(cp))
			return is_cased(cp);
	}
	return false;
}

void
hr_pylower(struct hr_buf *b, const char *p, size_t len)
{
	const char *start = p, *end = p + len;
	size_t n;
	int32_t cp;

	for (; p < end; p += n) {
		cp = hr_utf8_next(p, end, &n);
		if (cp < 0x80) {
			hr_buf_addc(b, (char)(cp >= 'A' && cp <= 'Z' ? cp + 32 : cp));
		} else if (cp == 0x130) {
			hr_utf8_add(b, 'i');
			hr_utf8_add(b, 0x307);
		} else if (cp == 0x3A3) {
			hr_utf8_add(b, cased_before(start, p, end) && !cased_after(p + n, end)
					   ? 0x3C2
					   : 0x3C3);
		} else {
			hr_utf8_add(b, (uint32_t)utf8proc_tolower(cp));
		}
	}
}
