/* hr_swar: scans eight bytes at a time for characters that JSON must escape. Every byte of every
 * observation passes here; a table costs three times as much. */
#ifndef HR_BASE_TEXT_SWAR_H
#define HR_BASE_TEXT_SWAR_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define HR_SWAR_ONES 0x0101010101010101u
#define HR_SWAR_HIGH 0x8080808080808080u

/* Returns the high bit of every byte of w that is a control character, '"' or '\\'. Bits above the
 * lowest set one may be wrong: use the result for "none" and "the first" only. */
static inline uint64_t
hr_swar_special(uint64_t w)
{
	uint64_t quote = w ^ (HR_SWAR_ONES * '"'), slash = w ^ (HR_SWAR_ONES * '\\');

	return (((w - HR_SWAR_ONES * 0x20) & ~w) | ((quote - HR_SWAR_ONES) & ~quote) |
		   ((slash - HR_SWAR_ONES) & ~slash)) &
	       HR_SWAR_HIGH;
}

/* Returns the number of bytes before the first one with its high bit set in mask (not 0). */
static inline unsigned
hr_swar_before(uint64_t mask)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	return (unsigned)__builtin_ctzll(mask) / 8;
#else
	(void)mask; /* big-endian: "the first" is not known, so go byte by byte */
	return 0;
#endif
}

static inline bool
hr_swar_byte_special(unsigned char c)
{
	return c < 0x20 || c == '"' || c == '\\';
}

/* Returns the length of the prefix without control characters, '"' and '\\'. */
static inline size_t
hr_swar_plain(const char *p, size_t len)
{
	size_t i = 0;
	uint64_t w;

	for (; len - i >= 8; i += 8) {
		memcpy(&w, p + i, sizeof(w));
		if (hr_swar_special(w) != 0)
			break;
	}
	while (i < len && !hr_swar_byte_special((unsigned char)p[i]))
		i++;
	return i;
}

#endif
