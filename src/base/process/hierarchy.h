/* hr_hierarchy: the kernel's control groups of both versions: where they are, how to use them. */
#ifndef HR_BASE_PROCESS_HIERARCHY_H
#define HR_BASE_PROCESS_HIERARCHY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Returns a directory of a controller's hierarchy ("": version 2), from the text of
 * /proc/PID/mountinfo. `own` is the text of /proc/PID/cgroup: the directory is that of the process;
 * NULL: the top of what is mounted. Cuts both texts up. The caller frees. Returns NULL with *err,
 * HR_E_NOTFOUND if none is mounted; a mount point with a space or a backslash does not count. */
char *hr_hierarchy_parse(char *mountinfo, char *own, const char *controller, struct hr_err *err);

/* Returns the same of this process. proc is "/proc" except in tests; top: the top of what is
 * mounted. */
char *hr_hierarchy_find(const char *proc, const char *controller, bool top, struct hr_err *err);

/* Returns true if a directory of version 2 has the controller: a machine may mount it without
 * any. */
bool hr_hierarchy_has(const char *dir, const char *controller);

/* Returns the subgroup `name`, made unless it is there; the caller frees. NULL with *err set. */
char *hr_hierarchy_make(const char *parent, const char *name, struct hr_err *err);

/* Writes a file of a group. Returns 0, or -1 with *err set. */
int hr_hierarchy_put(const char *group, const char *file, const char *text, struct hr_err *err);
int hr_hierarchy_put_number(const char *group, const char *file, uint64_t n, struct hr_err *err);

/* Calls fn for each process of a group and of the groups below it; another return than 0 ends that.
 * Returns 0, the other return of fn, or -1 with *err set: as if a process is in another namespace
 * than this one, and has no number here. */
typedef int hr_hierarchy_fn(pid_t pid, void *arg);
int hr_hierarchy_each(const char *group, hr_hierarchy_fn *fn, void *arg, struct hr_err *err);

/* Enables controllers, as "+memory +pids", for the subgroups of a directory of version 2, which
 * must hold no process: the one that calls, or with `all` every one, moves to its subgroup
 * "handrail-server", for which hr_hierarchy_find() returns the parent. Returns 0, or -1 with *err
 * set. */
int hr_hierarchy_share(const char *parent, const char *controllers, bool all, struct hr_err *err);

#endif
