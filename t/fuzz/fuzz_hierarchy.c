/* mountinfo and, after a NUL, /proc/PID/cgroup, of any bytes: no crash, and a directory or an
 * error. */
#include "config.h"

#include <string.h>

#include "base/buf.h"
#include "base/process/hierarchy.h"
#include "fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const controllers[] = {"", "memory", "pids", "cpu", "freezer"};
	size_t i;
	int top;

	for (i = 0; i < sizeof(controllers) / sizeof(*controllers); i++)
		for (top = 0; top < 2; top++) {
			struct hr_err err = {0};
			HR_FREE char *text = malloc(size + 2);
			HR_FREE char *dir = NULL;

			if (text == NULL)
				return 0;
			if (size > 0)
				memcpy(text, data, size);
			memset(text + size, 0, 2);
			dir = hr_hierarchy_parse(
			    text, top ? NULL : text + strlen(text) + 1, controllers[i], &err);
			/* a mount point with escapes is none of ours; the path of a group has a
			 * backslash of its own name as it is */
			must(dir != NULL ? dir[0] != '\0' && (!top || strchr(dir, '\\') == NULL)
					 : err.code != HR_OK);
		}
	return 0;
}
