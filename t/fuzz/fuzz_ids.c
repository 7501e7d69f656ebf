/* /etc/subuid of any bytes: no crash, and a range of numbers that ids can be. */
#include "config.h"

#include <string.h>

#include "base/clean.h"
#include "box/ids.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HR_FREE char *text = calloc(1, size + 1);
	long start = 0, count = 0;

	if (text == NULL)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	if (box_ids_range(text, "a", 1000, &start, &count))
		must(start > 0 && start < UINT32_MAX && count > 0 && count < UINT32_MAX);
	return 0;
}
