/* Decodes, encodes and counts generalised UTF-8. */
#include "config.h"

#include "base/text/utf8.h"

#include <string.h>

#include "base/text/swar.h"

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

void
hr_utf8_add(struct hr_buf *b, uint32_t cp)
{
	char out[4];

	hr_buf_add(b, out, hr_utf8_put(out, cp));
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

bool
hr_utf8_strict(const char *p, size_t len)
{
	size_t n;

	for (; len > 0; p += n, len -= n) {
		n = hr_utf8_len(p, len);
		if (n == 0)
			return false;
	}
	return true;
}

/* Returns the length of the white space at s; 0: none. */
static size_t
space_length(const char *s, const char *end)
{
	size_t n;

	return hr_utf8_is_space(hr_utf8_next(s, end, &n)) ? n : 0;
}

size_t
hr_utf8_lstrip(const char *s, size_t len)
{
	size_t at = 0, n;

	while (at < len && (n = space_length(s + at, s + len)) > 0)
		at += n;
	return at;
}

size_t
hr_utf8_torn(const char *p, size_t len)
{
	size_t back, n;

	for (back = 1; back <= 3 && back <= len; back++) {
		if (((unsigned char)p[len - back] & 0xC0) == 0x80)
			continue; /* this is a continuation byte */
		if (hr_utf8_next(p + len - back, p + len, &n) < 0 && n == back &&
		    (unsigned char)p[len - back] >= 0xC2 && (unsigned char)p[len - back] <= 0xF4)
			return back;
		break;
	}
	return 0;
}

size_t
hr_utf8_rstrip(const char *s, size_t len)
{
	size_t n;

	while (len > 0) {
		n = 1;
		while (n < 3 && n < len && ((unsigned char)s[len - n] & 0xC0) == 0x80)
			n++; /* no white space character has four bytes */
		if (space_length(s + len - n, s + len) != n)
			break;
		len -= n;
	}
	return len;
}

void
hr_utf8_strip(const char **p, size_t *len)
{
	size_t from;

	*len = hr_utf8_rstrip(*p, *len);
	from = hr_utf8_lstrip(*p, *len);
	*p += from;
	*len -= from;
}

void
hr_utf8_replace(struct hr_buf *b, const char *p, size_t len)
{
	const char *end = p + len;
	size_t n;
	int32_t cp;

	for (; p < end; p += n) {
		cp = hr_utf8_next(p, end, &n);
		if (cp >= 0 && !hr_utf8_is_surrogate(cp)) {
			hr_buf_add(b, p, n);
			continue;
		}
		hr_buf_adds(b, "\xEF\xBF\xBD");
		if (cp >= 0)
			n = 1; /* Python counts each byte of a surrogate as an error of its own */
	}
}
