/* Handles names of variables, and quotes their values for bash. */
#include "config.h"

#include "host/common/envquote.h"

#include <string.h>

#include "base/text/quote.h"

size_t
hr_env_name(const char *entry)
{
	size_t n = strspn(entry, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");

	return entry[n] == '=' && (*entry < '0' || *entry > '9') ? n : 0;
}

static void
quote_ansi(struct hr_buf *b, const char *p)
{
	hr_buf_adds(b, "$'");
	for (; *p != '\0'; p++) {
		unsigned char c = (unsigned char)*p;

		if (c == '\\' || c == '\'')
			hr_buf_addf(b, "\\%c", c);
		else if (c == '\n')
			hr_buf_adds(b, "\\n");
		else if (c == '\t')
			hr_buf_adds(b, "\\t");
		else if (c < 0x20 || c == 0x7f)
			hr_buf_addf(b, "\\%03o", c); /* uses three digits, since more may follow */
		else
			hr_buf_addc(b, *p);
	}
	hr_buf_addc(b, '\'');
}

void
hr_env_quote(struct hr_buf *b, const char *value)
{
	const char *p;

	for (p = value; *p != '\0'; p++) {
		if ((unsigned char)*p < 0x20 || *p == 0x7f) {
			quote_ansi(b, value);
			return;
		}
	}
	hr_quote_shell(b, value, strlen(value));
}
