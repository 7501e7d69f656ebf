/* hr_cgroup: the control groups of the sandbox's commands: one below ours where that is allowed, of
 * version 2 or, for memory, pids and cpu each, of version 1. */
#ifndef HR_SUPERVISOR_RUN_CGROUP_H
#define HR_SUPERVISOR_RUN_CGROUP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* 0: not limited. */
struct hr_cgroup_limits {
	uint64_t memory;                /* bytes */
	uint64_t pids;                  /* processes and threads */
	uint64_t cpu_quota, cpu_period; /* microseconds of processor time in so many of the clock */
};

struct hr_cgroup {
	char *dirs[4]; /* made by us; NULL behind the last */
	size_t n;
	bool has_memory, has_pids, has_cpu; /* whether the limit asked for is in force there */
};

/* Makes groups of that name for what is limited. proc is "/proc" but in tests. Our own process is
 * moved into a group of its own where version 2 asks for that. -1: not all that was asked for is
 * limited, *err says why; what could be is. */
int hr_cgroup_open(struct hr_cgroup *g, const char *proc, const char *name,
    const struct hr_cgroup_limits *l, struct hr_err *err);
/* Removes them; they are empty by now, or stay. */
void hr_cgroup_close(struct hr_cgroup *g);

#endif
