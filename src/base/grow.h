/* hr_grow: arrays that get one more item at a time. */
#ifndef HR_BASE_GROW_H
#define HR_BASE_GROW_H

#include <stddef.h>

/* Room for one more behind n items of `size` bytes: the array that the pointer at `items` leads to
 * doubles when it is full. -1: no memory, and all is as it was. */
int hr_grow(void *items, size_t n, size_t *room, size_t size);

#endif
