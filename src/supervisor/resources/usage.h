/* hr_usage: reads the sandbox's resource usage from the files of the control groups and the
 * kernel. */
#ifndef HR_SUPERVISOR_RESOURCES_USAGE_H
#define HR_SUPERVISOR_RESOURCES_USAGE_H

#include <stdbool.h>
#include <stdint.h>

struct hr_cgroup;

bool hr_usage_has_file(const char *dir, const char *name);

/* Reads the number after a key; with "" the first in the file. Returns false if there is none. */
bool hr_usage_number(const char *dir, const char *name, const char *key, uint64_t *ret);

/* Returns the first group that has this file, borrowed; NULL if there is none. */
const char *hr_usage_group(const struct hr_cgroup *groups, const char *file);

/* Returns the bytes charged to the group, without inactive file cache, which the kernel reclaims
 * when necessary. Returns false if no group counts memory. */
bool hr_usage_memory(const struct hr_cgroup *groups, uint64_t *ret);

#endif
