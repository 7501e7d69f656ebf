/* hr_grow: grows arrays by one item at a time. */
#ifndef HR_BASE_GROW_H
#define HR_BASE_GROW_H

#include <stddef.h>

/* Makes room for one more item after n items of `size` bytes: a full array, whose pointer is at
 * `items`, is doubled. Returns 0, or -1 without memory and with nothing changed. */
int hr_grow(void *items, size_t n, size_t *room, size_t size);

#endif
