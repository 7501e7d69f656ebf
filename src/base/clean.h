/* What a block owns and hands to nobody is given up where the block is left, by whichever way. */
#ifndef HR_BASE_CLEAN_H
#define HR_BASE_CLEAN_H

#include <stdlib.h>
#include <string.h>

/* done is called with the variable's address: one of our _done functions, or hr_fd_close. The
 * variable has a value, or is initialised, before anything may leave the block. */
#define HR_CLEAN(done) __attribute__((cleanup(done)))

/* free(): what was asked for from the heap; NULL at the beginning */
#define HR_FREE HR_CLEAN(hr_clean_free)

static inline void
hr_clean_free(void *at)
{
	void *p;

	memcpy(&p, at, sizeof(p));
	free(p);
}

#endif
