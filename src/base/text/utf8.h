/* hr_utf8: handles code points, with Python's view of them. A Python string may contain lone
 * surrogates and JSON can express them, so inside the programs text is "generalised UTF-8": valid
 * UTF-8 in which U+D800..U+DFFF may also occur, three bytes each. The two bytes C0 80 stand for
 * U+0000 in the keys of objects, which json-c keeps as C strings; they occur nowhere else. */
#ifndef HR_BASE_TEXT_UTF8_H
#define HR_BASE_TEXT_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* Checks the first continuation byte after each lead, so that overlong forms and values beyond
 * U+10FFFF are refused at the second byte (Unicode table 3-7, but for surrogates). */
static inline bool
hr_utf8_second_fits(unsigned char lead, unsigned char second)
{
	switch (lead) {
	case 0xE0: return second >= 0xA0 && second <= 0xBF;
	case 0xF0: return second >= 0x90 && second <= 0xBF;
	case 0xF4: return second >= 0x80 && second <= 0x8F;
	default: return second >= 0x80 && second <= 0xBF;
	}
}

/* Returns the code point at p (p < end) and its length. -1: malformed; *ret_len is then the number
 * of bytes that one U+FFFD replaces (the maximal subpart, at least 1). Surrogates are code points
 * here. */
static inline int32_t
hr_utf8_next(const char *p, const char *end, size_t *ret_len)
{
	const unsigned char *s = (const unsigned char *)p;
	size_t room = (size_t)(end - p), want, i;
	int32_t cp;

	*ret_len = 1;
	if (s[0] < 0x80)
		return s[0];
	if (s[0] < 0xC2 || s[0] > 0xF4)
		return -1;
	want = s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : 4;
	if (room < 2 || !hr_utf8_second_fits(s[0], s[1]))
		return -1;
	cp = s[0] & (0xFF >> (want + 1));
	cp = cp << 6 | (s[1] & 0x3F);
	for (i = 2; i < want; i++) {
		*ret_len = i;
		if (i >= room || (s[i] & 0xC0) != 0x80)
			return -1;
		cp = cp << 6 | (s[i] & 0x3F);
	}
	*ret_len = want;
	return cp;
}

/* Encodes cp, also a surrogate, and returns the number of bytes written, 1 to 4. */
size_t hr_utf8_put(char out[4], uint32_t cp);
void hr_utf8_add(struct hr_buf *b, uint32_t cp);

static inline bool
hr_utf8_is_surrogate(int32_t cp)
{
	return cp >= 0xD800 && cp <= 0xDFFF;
}

/* Returns the length of the character at s (1 to 4) by RFC 3629; 0: malformed, or a surrogate. len
 * >= 1. */
static inline size_t
hr_utf8_len(const char *s, size_t len)
{
	size_t n;
	int32_t cp = hr_utf8_next(s, s + len, &n);

	return cp < 0 || hr_utf8_is_surrogate(cp) ? 0 : n;
}

/* Returns the number of bytes at the end, at most 3, that may be the start of a character. */
size_t hr_utf8_torn(const char *p, size_t len);

/* Counts the characters in the first len bytes of well-formed text. */
size_t hr_utf8_count(const char *p, size_t len);

/* Returns true if all bytes are generalised UTF-8. */
bool hr_utf8_valid(const char *p, size_t len);

/* Returns true if all bytes are UTF-8 by RFC 3629: no surrogates. */
bool hr_utf8_strict(const char *p, size_t len);

/* Appends the bytes as Python's decode(errors="replace"): invalid ones become U+FFFD. */
void hr_utf8_replace(struct hr_buf *b, const char *p, size_t len);

/* Returns true if Python's str.isspace() does; false for -1. */
static inline bool
hr_utf8_is_space(int32_t cp)
{
	if (cp < 0x80)
		return cp == ' ' || (cp >= 0x09 && cp <= 0x0D) || (cp >= 0x1C && cp <= 0x1F);
	return cp == 0x85 || cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) ||
	       cp == 0x2028 || cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

/* Strips as Python's strip(), lstrip() and rstrip(). Invalid bytes are never white space. */
void hr_utf8_strip(const char **p, size_t *len);
/* Returns the number of bytes of leading white space. */
size_t hr_utf8_lstrip(const char *s, size_t len);
size_t
hr_utf8_rstrip(const char *s, size_t len); /* Returns the length without trailing white space. */

#endif
