#include "config.h"

#include "base/percent.h"

int
hr_hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
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
