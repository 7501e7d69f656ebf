/* Names of archive entries and of uploads: whatever is let through, walked component by component,
 * stays beneath its directory. */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "files/archive/unpack.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	HR_BUF(clean, PATH_MAX + 1);
	HR_BUF(again, PATH_MAX + 1);
	const char *p;
	unsigned depth = 0;
	size_t n;
	HR_FREE char *name = NULL;
	int r;

	if (memchr(data, '\0', size) != NULL || size > 100000)
		return 0;
	name = malloc(size + 1);
	must(name != NULL);
	if (size > 0)
		memcpy(name, data, size);
	name[size] = '\0';
	r = hr_unpack_name(name, &clean);
	must(r == 0 || r == 1 || (r == -1 && (errno == ENAMETOOLONG || errno == ELOOP)));
	must(r != 0 || clean.fail == HR_OK);
	if (name[0] == '/' || strstr(name, "..") != NULL)
		must(r == 1);
	if (r == 0) {
		for (p = hr_buf_str(&clean); *p != '\0'; p += n + (p[n] == '/')) {
			n = strcspn(p, "/");
			must(n > 0 && n <= NAME_MAX && !(n == 1 && *p == '.') &&
			     !(n == 2 && memcmp(p, "..", 2) == 0));
			must(p[n] == '\0' || p[n + 1] != '\0');
			depth++;
		}
		must(depth <= HR_UNPACK_DEPTH);
		must(hr_unpack_name(hr_buf_str(&clean), &again) == 0);
		must(again.len == clean.len &&
		     memcmp(hr_buf_str(&again), hr_buf_str(&clean), clean.len) == 0);
	}
	return 0;
}
