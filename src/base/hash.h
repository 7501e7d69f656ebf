/* FNV-1a of 64 bits. An attacker can construct bytes of equal hash. Bytes may come in pieces; the
 * first call gets HR_HASH. */
#ifndef HR_BASE_HASH_H
#define HR_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define HR_HASH 14695981039346656037u

static inline uint64_t
hr_hash(uint64_t h, const void *p, size_t len)
{
	const unsigned char *s = (const unsigned char *)p, *end = s + len;

	while (s < end)
		h = (h ^ *s++) * 1099511628211u;
	return h;
}

#endif
