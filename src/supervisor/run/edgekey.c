/* Computes digests for nginx's secure_link. */
#include "config.h"

#include "supervisor/run/edgekey.h"

#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include <md5.h>

#include "base/text/quote.h"

#define SALT_TEXT (2 * HR_KEYSUM_SALT)

void
hr_edgekey_sum(const unsigned char salt[HR_KEYSUM_SALT], const char *key, size_t len,
    unsigned char ret[HR_EDGEKEY])
{
	char text[SALT_TEXT + 1];
	MD5_CTX md5;

	hr_quote_hex(text, salt, HR_KEYSUM_SALT);
	MD5Init(&md5);
	MD5Update(&md5, (const uint8_t *)text, SALT_TEXT);
	MD5Update(&md5, (const uint8_t *)key, len);
	MD5Final(ret, &md5);
	explicit_bzero(&md5, sizeof(md5)); /* the context holds the last block */
}

/* Appends base64 for URLs, without padding. */
static void
put_sum(struct hr_buf *b, const unsigned char sum[HR_EDGEKEY])
{
	static const char digits[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	unsigned bits = 0, n = 0;
	size_t i;

	for (i = 0; i < HR_EDGEKEY; i++) {
		bits = bits << 8 | sum[i];
		for (n += 8; n >= 6; n -= 6)
			hr_buf_addc(b, digits[bits >> (n - 6) & 63]);
	}
	hr_buf_addc(b, digits[bits << (6 - n) & 63]);
}

void
hr_edgekey_put(
    struct hr_buf *b, const unsigned char salt[HR_KEYSUM_SALT], const unsigned char sum[HR_EDGEKEY])
{
	char text[SALT_TEXT + 1];

	hr_quote_hex(text, salt, HR_KEYSUM_SALT);
	hr_buf_adds(b, "\tsecure_link ");
	put_sum(b, sum);
	hr_buf_addf(b, ";\n\tsecure_link_md5 \"%.*s$http_x_session_api_key\";\n", SALT_TEXT, text);
}
