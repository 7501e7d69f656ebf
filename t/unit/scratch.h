/* A directory for the directories of a program's tests: it goes with the program, also when a test
 * failed and its own teardown was not reached. Of the parent: tcase_add_unchecked_fixture(). */
#ifndef HR_T_UNIT_SCRATCH_H
#define HR_T_UNIT_SCRATCH_H

#include <check.h>
#include <stdlib.h>

#include "base/path.h"

static char scratch[] = "/tmp/handrail-test-XXXXXX";

static inline void
scratch_make(void)
{
	ck_assert_ptr_nonnull(mkdtemp(scratch));
}

static inline void
scratch_remove(void)
{
	ck_assert_int_eq(hr_path_remove(scratch, NULL), 0);
}

#endif
