/* Implements Python's str methods on UTF-8. */
#include "config.h"

#include "files/pytext.h"

#include <stdbool.h>
#include <string.h>

#include "base/text/utf8.h"

#define PY_INT_DIGITS 4300 /* int() refuses longer strings */

void
hr_pytext_universal(struct hr_buf *text, size_t from)
{
	char *p, *out, *end;

	if (text->len <= from)
		return;
	end = text->p + text->len;
	p = memchr(text->p + from, '\r', text->len - from);
	if (p == NULL)
		return;
	for (out = p; p < end; p++) {
		if (*p != '\r') {
			*out++ = *p;
			continue;
		}
		*out++ = '\n';
		if (p + 1 < end && p[1] == '\n')
			p++;
	}
	text->len = (size_t)(out - text->p);
	*out = '\0';
}

size_t
hr_pytext_newlines(const char *p, size_t len)
{
	const char *end = p + len;
	size_t n = 0;

	while ((p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
		n++;
		p++;
	}
	return n;
}

size_t
hr_pytext_lines(const char *p, size_t len)
{
	return hr_pytext_newlines(p, len) + (len > 0 && p[len - 1] != '\n');
}

size_t
hr_pytext_line_at(const char *p, size_t len, size_t line)
{
	const char *end = p + len, *at = p;

	while (line > 0 && at < end) {
		at = memchr(at, '\n', (size_t)(end - at));
		if (at == NULL)
			return len;
		at++;
		line--;
	}
	return (size_t)(at - p);
}

/* Returns the bytes of the line break at p, or 0 if there is none (doc/files.md, "Text":
 * extended). */
static size_t
line_break(const char *p, const char *end)
{
	const unsigned char *s = (const unsigned char *)p;
	size_t room = (size_t)(end - p);

	switch (s[0]) {
	case '\r': return room > 1 && s[1] == '\n' ? 2 : 1;
	case '\n':
	case 0x0B:
	case 0x0C:
	case 0x1C:
	case 0x1D:
	case 0x1E: return 1;
	case 0xC2: return room > 1 && s[1] == 0x85 ? 2 : 0;
	case 0xE2: return room > 2 && s[1] == 0x80 && (s[2] == 0xA8 || s[2] == 0xA9) ? 3 : 0;
	default: return 0;
	}
}

void
hr_pytext_rejoin(struct hr_buf *b, const char *p, size_t len)
{
	const char *end = p + len, *from = p;
	size_t n;

	while (p < end) {
		n = line_break(p, end);
		if (n == 0) {
			p++;
			continue;
		}
		hr_buf_add(b, from, (size_t)(p - from));
		p += n;
		from = p;
		if (p < end)
			hr_buf_addc(b, '\n');
	}
	hr_buf_add(b, from, (size_t)(end - from));
}

size_t
hr_pytext_prefix(const char *p, size_t len, size_t chars)
{
	size_t i;

	if (len <= chars)
		return len;
	for (i = 0; i < len; i++) {
		if (((unsigned char)p[i] & 0xC0) == 0x80)
			continue;
		if (chars == 0)
			return i;
		chars--;
	}
	return len;
}

size_t
hr_pytext_rstrip(const char *p, size_t len)
{
	const char *s = p;
	char last;
	size_t n = len;

	if (len == 0)
		return 0;
	/* takes a fast path for nearly every line */
	last = p[len - 1];
	if (last > ' ' && last < 0x7F)
		return len;
	hr_utf8_strip(&s, &n);
	return n == 0 ? 0 : (size_t)(s - p) + n;
}

static size_t
slice_index(size_t n, int64_t i)
{
	if (i < 0)
		return (uint64_t) - (i + 1) >= n ? 0 : n - (size_t) - (i + 1) - 1;
	return (uint64_t)i > n ? n : (size_t)i;
}

void
hr_pytext_slice(size_t n, int64_t start, int64_t end, size_t *ret_from, size_t *ret_to)
{
	*ret_from = slice_index(n, start);
	*ret_to = slice_index(n, end);
	if (*ret_to < *ret_from)
		*ret_to = *ret_from;
}

int
hr_pytext_digit(int32_t cp)
{
	/* the zeros; their nine other digits follow each */
	static const int32_t zeros[] = {'0', 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66,
	    0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810,
	    0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900,
	    0xa9d0, 0xa9f0, 0xaa50, 0xabf0, 0xff10, 0x104a0, 0x10d30, 0x11066, 0x110f0, 0x11136,
	    0x111d0, 0x112f0, 0x11450, 0x114d0, 0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950,
	    0x11c50, 0x11d50, 0x11da0, 0x11f50, 0x16a60, 0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8,
	    0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e4f0, 0x1e950, 0x1fbf0};
	size_t i;

	for (i = 0; i < sizeof(zeros) / sizeof(zeros[0]); i++)
		if (cp >= zeros[i] && cp <= zeros[i] + 9)
			return cp - zeros[i];
	return -1;
}

int
hr_pytext_int(const char *p, size_t len, int64_t *ret)
{
	bool negative = false, digit = false;
	size_t digits = 0, i, n;
	int64_t v = 0;
	int one;
	const char *end;

	for (i = 0; i < len; i++) /* blanks for strip(), but not for int() */
		if (p[i] >= 0x1C && p[i] <= 0x1F)
			return -1;
	hr_utf8_strip(&p, &len);
	end = p + len;
	if (p < end && (*p == '+' || *p == '-'))
		negative = *p++ == '-';
	for (; p < end; p += n) {
		one = hr_pytext_digit(hr_utf8_next(p, end, &n));
		if (*p == '_' && digit && p + 1 < end) {
			digit = false;
			continue;
		}
		if (one < 0 || ++digits > PY_INT_DIGITS)
			return -1;
		digit = true;
		if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, one, &v))
			v = INT64_MAX;
	}
	if (!digit)
		return -1;
	*ret = negative ? -v : v;
	return 0;
}
