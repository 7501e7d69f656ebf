/* hr_keysum: stores a session key as SHA-256 of a random salt and the key. A reader of the sum can
 * neither send it in the key's place nor find the key, unless the key can be guessed. */
#ifndef HR_PROTO_KEYSUM_H
#define HR_PROTO_KEYSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HR_KEYSUM 32
#define HR_KEYSUM_SALT 32

/* Start of the supervisor's answer to HR_CHANNEL_KEYS (PROTOCOL); the sums follow. */
struct hr_keysum_head {
	unsigned char salt[HR_KEYSUM_SALT];
	uint32_t count;   /* number of sums; 0: authentication is off */
	uint32_t longest; /* bytes of the longest key */
};

void hr_keysum(const unsigned char salt[HR_KEYSUM_SALT], const char *key, size_t len,
    unsigned char ret[HR_KEYSUM]);

/* Puts the plain SHA-256 of the key in hexadecimal, as a fleet sends it. */
void hr_keysum_hex(const char *key, char ret[2 * HR_KEYSUM + 1]);

/* Compares in constant time: the volatile keeps the compiler from leaving early. */
static inline bool
hr_keysum_equal(const unsigned char a[HR_KEYSUM], const unsigned char b[HR_KEYSUM])
{
	volatile unsigned char diff = 0;
	size_t i;

	for (i = 0; i < HR_KEYSUM; i++)
		diff |= a[i] ^ b[i];
	return diff == 0;
}

#endif
