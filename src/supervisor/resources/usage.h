/* hr_usage: what the files of the control groups, and the kernel, say of the sandbox's use. */
#ifndef HR_SUPERVISOR_RESOURCES_USAGE_H
#define HR_SUPERVISOR_RESOURCES_USAGE_H

#include <stdbool.h>
#include <stdint.h>

struct hr_cgroup;

bool hr_usage_has_file(const char *dir, const char *name);

/* The number behind a key, "" for the first one of the file. false: there is none. */
bool hr_usage_number(const char *dir, const char *name, const char *key, uint64_t *ret);

/* The first of the groups that has such a file; borrowed from it. NULL: none. */
const char *hr_usage_group(const struct hr_cgroup *groups, const char *file);

/* Bytes that are charged to the group, without what is cached of files and not in use, which the
 * kernel takes back when it must. false: no group counts memory. */
bool hr_usage_memory(const struct hr_cgroup *groups, uint64_t *ret);

#endif
