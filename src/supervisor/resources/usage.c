/* Parses the kernel's text files, of both versions of control groups. */
#include "config.h"

#include "supervisor/resources/usage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"
#include "supervisor/run/cgroup.h"

#define FILE_MAX (64u << 10)

bool
hr_usage_has_file(const char *dir, const char *name)
{
	HR_FREE char *path = hr_path_join(dir, name);

	return path != NULL && access(path, F_OK) == 0;
}

bool
hr_usage_number(const char *dir, const char *name, const char *key, uint64_t *ret)
{
	char *line, *save = NULL, *end;
	HR_FREE char *path = hr_path_join(dir, name);
	size_t len = strlen(key);
	bool found = false;
	HR_BUF(text, FILE_MAX);

	line = path != NULL && hr_path_read(path, &text, NULL) == 0 && text.len > 0
		   ? strtok_r(text.p, "\n", &save)
		   : NULL;
	for (; line != NULL && !found; line = strtok_r(NULL, "\n", &save)) {
		if (len > 0 && (strncmp(line, key, len) != 0 || line[len] != ' '))
			continue;
		errno = 0;
		*ret = strtoull(line + (len > 0 ? len + 1 : 0), &end, 10);
		found = errno == 0 && *end == '\0';
	}
	return found;
}

const char *
hr_usage_group(const struct hr_cgroup *groups, const char *file)
{
	size_t i;

	for (i = 0; i < groups->n; i++) {
		if (hr_usage_has_file(groups->dirs[i], file))
			return groups->dirs[i];
	}
	return NULL;
}

bool
hr_usage_memory(const struct hr_cgroup *groups, uint64_t *ret)
{
	static const char *const files[][2] = {{"memory.current", "inactive_file"},
	    /* names in version 2, and in version 1 */
	    {"memory.usage_in_bytes", "total_inactive_file"}};
	uint64_t cached = 0;
	const char *dir;
	size_t i;

	for (i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		dir = hr_usage_group(groups, files[i][0]);
		if (dir == NULL || !hr_usage_number(dir, files[i][0], "", ret))
			continue;
		(void)hr_usage_number(dir, "memory.stat", files[i][1], &cached);
		*ret -= cached < *ret ? cached : *ret;
		return true;
	}
	return false;
}
