/* Numbers out of the kernel's text files, of both versions of control groups. */
#include "config.h"

#include "supervisor/usage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"
#include "supervisor/cgroup.h"

#define FILE_MAX (64u << 10)

bool
hr_usage_has_file(const char *dir, const char *name)
{
	char *path = hr_path_join(dir, name);
	bool there = path != NULL && access(path, F_OK) == 0;

	free(path);
	return there;
}

bool
hr_usage_number(const char *dir, const char *name, const char *key, uint64_t *ret)
{
	char *path = hr_path_join(dir, name), *line, *save = NULL, *end;
	size_t len = strlen(key);
	bool found = false;
	struct hr_buf text;

	hr_buf_init(&text, FILE_MAX);
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
	hr_buf_done(&text);
	free(path);
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
hr_usage_memory(const struct hr_cgroup *groups, struct hr_usage_memory *ret)
{
	const char *two = hr_usage_group(groups, "memory.current"), *one;

	ret->cached = 0;
	if (two != NULL && hr_usage_number(two, "memory.current", "", &ret->raw)) {
		(void)hr_usage_number(two, "memory.stat", "inactive_file", &ret->cached);
	} else {
		one = hr_usage_group(groups, "memory.usage_in_bytes");
		if (one == NULL || !hr_usage_number(one, "memory.usage_in_bytes", "", &ret->raw))
			return false;
		(void)hr_usage_number(one, "memory.stat", "total_inactive_file", &ret->cached);
	}
	if (ret->cached > ret->raw)
		ret->cached = ret->raw;
	ret->net = ret->raw - ret->cached;
	return true;
}
