/* Decoding, encoding and counting of generalised UTF-8. */
#include "config.h"

#include "proto/utf8.h"

#include <string.h>

#include "proto/swar.h"

size_t
hr_utf8_put(char out[4], uint32_t cp)
{
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (char)(0xC0 | cp >> 6);
		out[1] = (char)(0x80 | (cp & 0x3F));
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (char)(0xE0 | cp >> 12);
		out[1] = (char)(0x80 | (cp >> 6 & 0x3F));
		out[2] = (char)(0x80 | (cp & 0x3F));
		return 3;
	}
	out[0] = (char)(0xF0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 0x3F));
	out[2] = (char)(0x80 | (cp >> 6 & 0x3F));
	out[3] = (char)(0x80 | (cp & 0x3F));
	return 4;
}

size_t
hr_utf8_count(const char *p, size_t len)
{
	size_t i, n = 0;

	for (i = 0; i < len; i++)
		n += ((unsigned char)p[i] & 0xC0) != 0x80;
	return n;
}

bool
hr_utf8_valid(const char *p, size_t len)
{
	const char *end = p + len;
	uint64_t w;
	size_t n;

	while (p < end) {
		if (end - p >= 8) {
			memcpy(&w, p, sizeof(w));
			if ((w & HR_SWAR_HIGH) == 0) {
				p += 8;
				continue;
			}
		}
		if (hr_utf8_next(p, end, &n) < 0)
			return false;
		p += n;
	}
	return true;
}

static bool
is_python_space(int32_t cp)
{
	return (cp >= 0x09 && cp <= 0x0D) || (cp >= 0x1C && cp <= 0x20) || cp == 0x85 ||
	       cp == 0xA0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200A) || cp == 0x2028 ||
	       cp == 0x2029 || cp == 0x202F || cp == 0x205F || cp == 0x3000;
}

void
hr_utf8_strip(const char **p, size_t *len)
{
	const char *s = *p, *end = s + *len, *last;
	size_t n;

	while (s < end && is_python_space(hr_utf8_next(s, end, &n)))
		s += n;
	while (end > s) {
		last = end - 1;
		while (last > s && ((unsigned char)*last & 0xC0) == 0x80)
			last--;
		if (!is_python_space(hr_utf8_next(last, end, &n)) || last + n != end)
			break;
		end = last;
	}
	*p = s;
	*len = (size_t)(end - s);
}
