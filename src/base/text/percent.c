#include "config.h"

#include "base/text/percent.h"

#include <string.h>

int
hr_hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int32_t
hr_hex4(const char *p)
{
	int32_t v = 0;
	int i;

	for (i = 0; i < 4; i++) {
		if (hr_hex_value(p[i]) < 0)
			return -1;
		v = v << 4 | hr_hex_value(p[i]);
	}
	return v;
}

void
hr_percent_encode(struct hr_buf *b, const char *p, const char *safe)
{
	for (; *p != '\0'; p++) {
		unsigned char c = (unsigned char)*p;

		if ((c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
		    strchr(safe, c) != NULL)
			hr_buf_addc(b, *p);
		else
			hr_buf_addf(b, "%%%02X", c);
	}
}

void
hr_percent_decode(struct hr_buf *b, const char *p, size_t len, bool form)
{
	size_t i;

	for (i = 0; i < len; i++) {
		if (p[i] == '%' && len - i > 2 && hr_hex_value(p[i + 1]) >= 0 &&
		    hr_hex_value(p[i + 2]) >= 0) {
			hr_buf_addc(
			    b, (char)(hr_hex_value(p[i + 1]) << 4 | hr_hex_value(p[i + 2])));
			i += 2;
		} else {
			hr_buf_addc(b, form && p[i] == '+' ? ' ' : p[i]);
		}
	}
}
