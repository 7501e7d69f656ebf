/* What all targets begin with: libFuzzer's entry, which replay_main.c calls too, and must(), which
 * stays where assert() is compiled away. */
#ifndef HR_T_FUZZ_FUZZ_H
#define HR_T_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void
must(bool cond)
{
	if (!cond)
		abort();
}

#endif
