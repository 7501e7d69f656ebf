/* Frees what a block owns when the block is left, by whichever way. */
#ifndef HR_BASE_CLEAN_H
#define HR_BASE_CLEAN_H

#include <stdlib.h>
#include <string.h>

/* `done` is called with the variable's address: a _done function of this tree, or hr_fd_close. The
 * variable must be initialised before the block can be left. */
#define HR_CLEAN(done) __attribute__((cleanup(done)))

/* Heap memory that is freed with free() when the block is left; NULL at first. */
#define HR_FREE HR_CLEAN(hr_clean_free)

static inline void
hr_clean_free(void *at)
{
	void *p;

	memcpy(&p, at, sizeof(p));
	free(p);
}

#endif
