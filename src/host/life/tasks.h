/* hr_tasks: keeps the agent's list of tasks, a file on the host that no sandbox sees (doc/host.md,
 * "Tasks"). */
#ifndef HR_HOST_LIFE_TASKS_H
#define HR_HOST_LIFE_TASKS_H

#include "host/handle.h"

/* Returns the observation of a task_tracking action, or NULL with *err set. args may be NULL. */
struct json_object *
hr_tasks_act(struct hr_sandbox *s, struct json_object *args, struct hr_err *err);

#endif
