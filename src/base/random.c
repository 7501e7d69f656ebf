#include "config.h"

#include "base/random.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#include "base/text/quote.h"

int
hr_random(void *p, size_t len, struct hr_err *err)
{
	ssize_t n;

	hr_assert(len <= HR_RANDOM_MAX);
	do
		n = getrandom(p, len, 0);
	while (n < 0 && errno == EINTR);
	if (n == (ssize_t)len)
		return 0;
	return hr_err_sys(err, n < 0 ? errno : EIO, "no random bytes");
}

int
hr_random_hex(char *text, size_t digits, struct hr_err *err)
{
	unsigned char raw[HR_RANDOM_MAX];

	hr_assert(digits % 2 == 0);
	if (hr_random(raw, digits / 2, err) < 0)
		return -1;
	hr_quote_hex(text, raw, digits / 2);
	return 0;
}

int
hr_random_uuid(char text[HR_UUID_TEXT], struct hr_err *err)
{
	unsigned char r[16];
	char hex[33];

	if (hr_random(r, sizeof(r), err) < 0)
		return -1;
	r[6] = (unsigned char)((r[6] & 0x0f) | 0x40);
	r[8] = (unsigned char)((r[8] & 0x3f) | 0x80);
	hr_quote_hex(hex, r, sizeof(r));
	(void)snprintf(text, HR_UUID_TEXT, "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8, hex + 12,
	    hex + 16, hex + 20);
	return 0;
}
