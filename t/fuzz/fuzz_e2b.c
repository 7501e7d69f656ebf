/* The header Range of E2B's clients. The first byte is the file's size: ranges that were read lie
 * within the file, have bytes, and together no more than the file. A range alone is the one that
 * other downloads read. */
#include "config.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "files/filebody.h"
#include "worker/e2b/e2b.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct hr_bytepart r[HR_E2B_RANGES];
	off_t length, sum = 0, from, len;
	char *header;
	int i, n;

	if (size < 1)
		return 0;
	length = data[0] == UINT8_MAX ? (off_t)1 << 50 : data[0];
	header = malloc(size);
	must(header != NULL);
	memcpy(header, data + 1, size - 1);
	header[size - 1] = '\0';
	n = hr_e2b_ranges(header, length, r);
	must(n >= -2 && n <= HR_E2B_RANGES && (n != -1 || length > 0));
	for (i = 0; i < n; i++) {
		must(r[i].from >= 0 && r[i].len > 0 && r[i].len <= length - r[i].from);
		sum += r[i].len;
	}
	must(sum <= length);
	if (n == 1 && strchr(header, ',') == NULL) {
		must(hr_range_parse(header, length, &from, &len) == HR_RANGE_PART);
		must(from == r[0].from && len == r[0].len);
	}
	free(header);
	return 0;
}
