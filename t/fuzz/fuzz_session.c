/* hr_core between a mad shell and a mad client (t/unit/core_play.h). */
#include "config.h"

#include <stddef.h>
#include <stdint.h>

#include "../unit/core_play.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	core_play(data, size);
	return 0;
}
