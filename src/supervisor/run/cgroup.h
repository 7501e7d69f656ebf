/* hr_cgroup: makes the control groups of the sandbox's commands, below that of the server if
 * permitted: of version 2 or, each for memory, pids and cpu, of version 1. */
#ifndef HR_SUPERVISOR_RUN_CGROUP_H
#define HR_SUPERVISOR_RUN_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* The limits; 0: no limit. */
struct hr_cgroup_limits {
	uint64_t memory;                /* bytes */
	uint64_t pids;                  /* processes and threads */
	uint64_t cpu_quota, cpu_period; /* microseconds of CPU time per period in microseconds */
};

struct hr_cgroup {
	char *dirs[4]; /* created groups; NULL after the last */
	size_t n;
	bool has_memory, has_pids, has_cpu; /* the requested limit is in force */
};

/* Makes groups of that name for the limits. proc is "/proc" except in tests. Version 2 may require
 * to move this process into a subgroup. Returns -1 with *err set if not every limit is in force;
 * possible ones are. */
int hr_cgroup_open(struct hr_cgroup *g, const char *proc, const char *name,
    const struct hr_cgroup_limits *l, struct hr_err *err);
/* Removes the groups that are empty. */
void hr_cgroup_close(struct hr_cgroup *g);

#endif
