/* Decodes base64 of RFC 4648, the inverse of base/text/quote.h. */
#include "config.h"

#include "host/kubernetes/base64.h"

#include <string.h>

bool
hr_base64_read(struct hr_buf *b, const char *text)
{
	static const char alphabet[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	unsigned bits = 0, have = 0, pads = 0;
	const char *at;

	for (; *text != '\0'; text++) {
		if (strchr(" \t\r\n", *text) != NULL)
			continue;
		if (*text == '=') {
			pads++;
			continue;
		}
		at = strchr(alphabet, *text);
		if (at == NULL || pads > 0)
			return false;
		bits = (bits << 6 | (unsigned)(at - alphabet)) & 0xffffff;
		have += 6;
		if (have >= 8) {
			have -= 8;
			hr_buf_addc(b, (char)(bits >> have));
		}
	}
	/* remaining bits form no byte, and must be zeros */
	return pads <= 2 && have < 6 && (bits & ((1u << have) - 1)) == 0;
}
