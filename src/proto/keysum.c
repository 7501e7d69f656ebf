/* Uses libmd rather than libcrypto, which takes longer to load than a worker takes to start. */
#include "config.h"

#include "proto/keysum.h"

#include <stdio.h>
#include <string.h>
#include <sys/types.h>

#include <sha2.h>

#include "base/text/quote.h"

void
hr_keysum(const unsigned char salt[HR_KEYSUM_SALT], const char *key, size_t len,
    unsigned char ret[HR_KEYSUM])
{
	SHA2_CTX sha;

	SHA256Init(&sha);
	SHA256Update(&sha, salt, HR_KEYSUM_SALT);
	SHA256Update(&sha, (const uint8_t *)key, len);
	SHA256Final(ret, &sha);
	explicit_bzero(&sha, sizeof(sha)); /* the context still has the last block */
}

void
hr_keysum_hex(const char *key, char ret[2 * HR_KEYSUM + 1])
{
	unsigned char sum[HR_KEYSUM];
	SHA2_CTX sha;

	SHA256Init(&sha);
	SHA256Update(&sha, (const uint8_t *)key, strlen(key));
	SHA256Final(sum, &sha);
	explicit_bzero(&sha, sizeof(sha));
	hr_quote_hex(ret, sum, sizeof(sum));
}
