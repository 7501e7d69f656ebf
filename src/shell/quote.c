#include "config.h"

#include "shell/quote.h"

#include <string.h>

#include "base/text/quote.h"

static bool
is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c != '\0' && strchr("@%+=:,./-_", c));
}

void
hr_shell_quote(struct hr_buf *b, const char *s, size_t len)
{
	size_t i = 0;

	while (i < len && is_plain(s[i]))
		i++;
	if (len > 0 && i == len) {
		hr_buf_add(b, s, len);
		return;
	}
	hr_quote_shell(b, s, len);
}
