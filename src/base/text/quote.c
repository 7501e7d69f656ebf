/* Quotes text. All functions are pure and take a pointer and a length. */
#include "config.h"

#include "base/text/quote.h"

#include <stdbool.h>
#include <string.h>

#include "base/text/utf8.h"

static bool
is_control(const char *s, size_t n)
{
	unsigned char c = (unsigned char)s[0];

	if (n == 1)
		return c < 0x20 || c == 0x7F;
	/* C1 controls have two bytes in UTF-8 */
	return n == 2 && c == 0xC2 && (unsigned char)s[1] < 0xA0;
}

void
hr_quote_text(struct hr_buf *b, const char *s, size_t len)
{
	size_t i = 0;

	while (i < len) {
		size_t n = hr_utf8_len(s + i, len - i);

		if (n > 0 && !is_control(s + i, n)) {
			hr_buf_add(b, s + i, n);
			i += n;
			continue;
		}
		hr_buf_addf(b, "\\x%02x", (unsigned char)s[i]);
		i++;
	}
}

static void
quote_json_char(struct hr_buf *b, unsigned char c)
{
	static const char shorts[] = "b\bf\fn\nr\rt\t\"\"\\\\";
	size_t i;

	for (i = 0; i + 1 < sizeof(shorts); i += 2) {
		if ((unsigned char)shorts[i + 1] == c) {
			hr_buf_addf(b, "\\%c", shorts[i]);
			return;
		}
	}
	if (c < 0x20)
		hr_buf_addf(b, "\\u%04x", c);
	else
		hr_buf_addc(b, (char)c);
}

void
hr_quote_json(struct hr_buf *b, const char *s, size_t len)
{
	size_t i = 0;

	hr_buf_addc(b, '"');
	while (i < len) {
		size_t n = hr_utf8_len(s + i, len - i);

		if (n == 1)
			quote_json_char(b, (unsigned char)s[i]);
		else if (n > 1)
			hr_buf_add(b, s + i, n);
		else
			hr_buf_adds(b, "\xEF\xBF\xBD");
		i += n > 0 ? n : 1;
	}
	hr_buf_addc(b, '"');
}

void
hr_quote_base64(struct hr_buf *b, const void *data, size_t len)
{
	const unsigned char *p = data;
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	char *out = hr_buf_reserve(b, (len + 2) / 3 * 4);
	size_t i, rest, n = 0;
	unsigned v;

	if (out == NULL)
		return;
	for (i = 0; i < len; i += 3) {
		rest = len - i;
		v = (unsigned)p[i] << 16 | (rest > 1 ? (unsigned)p[i + 1] << 8 : 0) |
		    (rest > 2 ? p[i + 2] : 0);
		out[n++] = digits[v >> 18];
		out[n++] = digits[v >> 12 & 63];
		out[n++] = rest > 1 ? digits[v >> 6 & 63] : '=';
		out[n++] = rest > 2 ? digits[v & 63] : '=';
	}
	hr_buf_grew(b, n);
}

void
hr_quote_hex(char *to, const void *data, size_t len)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *p = data;

	for (; len > 0; len--, p++) {
		*to++ = digits[*p >> 4];
		*to++ = digits[*p & 15];
	}
	*to = '\0';
}

static int
value_of(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool
hr_quote_unbase64(struct hr_buf *b, const char *s, size_t len)
{
	unsigned bits = 0, have = 0;
	int v, i;

	if (len % 4 != 0)
		return false;
	for (i = 0; i < 2 && len > 0 && s[len - 1] == '='; i++)
		len--;
	for (; len > 0; s++, len--) {
		v = value_of(*s);
		if (v < 0)
			return false;
		bits = bits << 6 | (unsigned)v;
		have += 6;
		if (have >= 8) {
			have -= 8;
			hr_buf_addc(b, (char)(bits >> have & 0xff));
		}
	}
	return true;
}

void
hr_quote_shell(struct hr_buf *b, const char *s, size_t len)
{
	hr_buf_addc(b, '\'');
	while (len > 0) {
		const char *q = memchr(s, '\'', len);
		size_t n = q ? (size_t)(q - s) : len;

		hr_buf_add(b, s, n);
		if (q) {
			hr_buf_adds(b, "'\\''");
			n++;
		}
		s += n;
		len -= n;
	}
	hr_buf_addc(b, '\'');
}
