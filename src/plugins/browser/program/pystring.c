/* Reads string literals without a prefix. */
#include "config.h"

#include "plugins/browser/program/pyliterals.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "plugins/browser/program/pychars.h"
#include "proto/python/escape.h"
#include "proto/python/repr.h"

/* Converts line ends to \n, as Python reads source. The caller owns *ret. */
static char *
one_line_end(const char *p, size_t len, size_t *ret_len)
{
	char *copy = malloc(len + 1);
	size_t i, n = 0;

	for (i = 0; copy != NULL && i < len; i++) {
		if (p[i] == '\r' && i + 1 < len && p[i + 1] == '\n')
			continue;
		copy[n++] = p[i] == '\r' ? '\n' : p[i];
	}
	*ret_len = n;
	return copy;
}

/* Checks what Python refuses before it parses the literal. */
static bool
is_source(const char *p, size_t len, struct hr_buf *why)
{
	HR_BUF(text, 200);

	if (hr_pyencode_check(&text, "utf-8", p, len) < 0)
		hr_buf_addf(why, "UnicodeEncodeError: %s", hr_buf_str(&text));
	else if (memchr(p, '\0', len) != NULL)
		hr_buf_adds(why, "SyntaxError: source code string cannot contain null bytes");
	else
		return true;
	return false;
}

int
br_pystring(const char *p, size_t len, struct br_value *ret, struct hr_buf *why)
{
	size_t quotes = len >= 6 && p[1] == p[0] && p[2] == p[0] ? 3 : 1, n;
	HR_FREE char *source = NULL;
	HR_BUF(out, len);
	int bad;

	if (!is_source(p, len, why))
		return why->fail != HR_OK ? -1 : 1;
	source = one_line_end(p, len, &n);
	if (source == NULL)
		return -1;
	bad = hr_pyescape(&out, source + quotes, n - 2 * quotes, br_char_named, why);
	if (out.fail != HR_OK || why->fail != HR_OK)
		return -1;
	if (bad != 0)
		return 1;
	hr_buf_add(&out, "", 0);
	*ret = (struct br_value){.kind = BR_V_STR, .len = out.len};
	ret->text = out.p != NULL ? hr_buf_take(&out) : calloc(1, 1);
	return ret->text != NULL ? 0 : -1;
}
