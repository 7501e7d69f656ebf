/* What a worker is told of keys, one a line, in one answer. */
#ifndef T_UNIT_KEYSUMS_H
#define T_UNIT_KEYSUMS_H

#include <string.h>

#include "proto/auth.h"

#define KEYSUMS_MAX 8

static inline int
keysums_set(struct hr_auth *a, const char *keys, struct hr_err *err)
{
	struct {
		struct hr_keysum_head head;
		unsigned char sums[KEYSUMS_MAX][HR_KEYSUM];
	} told = {.head = {.salt = "salt"}};
	size_t n;

	for (; *keys != '\0'; keys += n + (keys[n] == '\n')) {
		n = strcspn(keys, "\n");
		if (n == 0)
			continue;
		hr_assert(told.head.count < KEYSUMS_MAX);
		hr_keysum(told.head.salt, keys, n, told.sums[told.head.count++]);
		if (n > told.head.longest)
			told.head.longest = (uint32_t)n;
	}
	n = sizeof(told.head) + told.head.count * HR_KEYSUM;
	return hr_auth_take(a, (const char *)&told, n, err) == 1 ? 0 : -1;
}

#endif
