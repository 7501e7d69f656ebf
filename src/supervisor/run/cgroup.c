/* The control groups of the sandbox's commands, with their limits. */
#include "config.h"

#include "supervisor/run/cgroup.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clean.h"
#include "base/process/hierarchy.h"

/* ---- version 1 ---- */

/* Adds a group. Returns its directory, owned by *g; NULL: none. */
static const char *
add_one(struct hr_cgroup *g, const char *proc, const char *controller, const char *name,
    struct hr_err *err)
{
	char *dir;
	HR_FREE char *parent = hr_hierarchy_find(proc, controller, false, err);

	dir = parent != NULL ? hr_hierarchy_make(parent, name, err) : NULL;
	if (dir != NULL)
		g->dirs[g->n++] = dir;
	return dir;
}

static int
open_one(struct hr_cgroup *g, const char *proc, const char *name, const struct hr_cgroup_limits *l,
    struct hr_err *err)
{
	const char *dir;

	if (l->memory > 0 && (dir = add_one(g, proc, "memory", name, err)) != NULL) {
		g->has_memory =
		    hr_hierarchy_put_number(dir, "memory.limit_in_bytes", l->memory, err) == 0;
		if (g->has_memory) /* no swap beyond it, if the kernel counts swap */
			(void)hr_hierarchy_put_number(
			    dir, "memory.memsw.limit_in_bytes", l->memory, NULL);
	}
	if (l->pids > 0 && (dir = add_one(g, proc, "pids", name, err)) != NULL)
		g->has_pids = hr_hierarchy_put_number(dir, "pids.max", l->pids, err) == 0;
	if (l->cpu_quota > 0 && (dir = add_one(g, proc, "cpu", name, err)) != NULL)
		g->has_cpu =
		    hr_hierarchy_put_number(dir, "cpu.cfs_period_us", l->cpu_period, err) == 0 &&
		    hr_hierarchy_put_number(dir, "cpu.cfs_quota_us", l->cpu_quota, err) == 0;
	return 0;
}

/* ---- version 2 ---- */

static int
open_two(struct hr_cgroup *g, const char *proc, const char *name, const struct hr_cgroup_limits *l,
    struct hr_err *err)
{
	const char *controllers = l->memory == 0 ? "+pids"
				  : l->pids == 0 ? "+memory"
						 : "+memory +pids";
	char *dir = NULL, text[48];
	HR_FREE char *parent = hr_hierarchy_find(proc, "", false, err);
	int r = 0;

	if (parent != NULL && (l->memory > 0 || l->pids > 0))
		r = hr_hierarchy_share(parent, controllers, false, err);
	/* separate: without it the other limits still work */
	if (parent != NULL && l->cpu_quota > 0 &&
	    hr_hierarchy_share(parent, "+cpu", false, err) == 0)
		g->has_cpu = true;
	if (parent != NULL && (r == 0 || g->has_cpu))
		dir = hr_hierarchy_make(parent, name, err);
	if (dir == NULL) {
		g->has_cpu = false;
		return -1;
	}
	g->dirs[g->n++] = dir;
	if (r == 0) {
		g->has_memory = l->memory > 0 &&
				hr_hierarchy_put_number(dir, "memory.max", l->memory, err) == 0;
		g->has_pids =
		    l->pids > 0 && hr_hierarchy_put_number(dir, "pids.max", l->pids, err) == 0;
	}
	if (g->has_memory)
		(void)hr_hierarchy_put(dir, "memory.swap.max", "0", NULL);
	(void)snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64, l->cpu_quota, l->cpu_period);
	g->has_cpu = g->has_cpu && hr_hierarchy_put(dir, "cpu.max", text, err) == 0;
	if (l->cpu_quota == 0)
		(void)hr_hierarchy_put(
		    dir, "cpu.max", "max", NULL); /* a predecessor's shell may be here */
	return 0;
}

static bool
is_two(const char *proc, const char *controller)
{
	HR_FREE char *dir = hr_hierarchy_find(proc, "", false, NULL);

	return dir != NULL && hr_hierarchy_has(dir, controller);
}

int
hr_cgroup_open(struct hr_cgroup *g, const char *proc, const char *name,
    const struct hr_cgroup_limits *l, struct hr_err *err)
{
	bool two;
	int r;

	memset(g, 0, sizeof(*g));
	if (l->memory == 0 && l->pids == 0 && l->cpu_quota == 0)
		return 0;
	two = is_two(proc, l->memory > 0 ? "memory" : l->pids > 0 ? "pids" : "cpu");
	r = two ? open_two(g, proc, name, l, err) : open_one(g, proc, name, l, err);
	return r != 0 || (l->memory > 0 && !g->has_memory) || (l->pids > 0 && !g->has_pids) ||
		       (l->cpu_quota > 0 && !g->has_cpu)
		   ? -1
		   : 0;
}

void
hr_cgroup_close(struct hr_cgroup *g)
{
	size_t i;

	for (i = 0; i < g->n; i++) {
		(void)rmdir(g->dirs[i]); /* fails while a process that cannot be killed is in it */
		free(g->dirs[i]);
	}
	memset(g, 0, sizeof(*g));
}
