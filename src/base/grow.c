/* Grows arrays by one item at a time. */
#include "config.h"

#include "base/grow.h"

#include <stdlib.h>
#include <string.h>

int
hr_grow(void *items, size_t n, size_t *room, size_t size)
{
	size_t want = *room == 0 ? 16 : *room * 2;
	void *p;

	if (n < *room)
		return 0;
	memcpy(&p, items, sizeof(p)); /* items points to a pointer of any type */
	p = reallocarray(p, want, size);
	if (p == NULL)
		return -1;
	memcpy(items, &p, sizeof(p));
	*room = want;
	return 0;
}
