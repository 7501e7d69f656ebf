/* Performs handrail's own actions in a sandbox. */
#ifndef HR_HOST_LIFE_ACTION_H
#define HR_HOST_LIFE_ACTION_H

#include "host/handle.h"

/* Identifies a request of hr_sandbox_action(), so that it can be found among a shell's commands,
 * and aborts it when a descriptor is readable (its command continues). */
struct hr_action_way {
	const char *id; /* value of X-Request-ID */
	int cancel_fd;
};
int hr_sandbox_action_as(struct hr_sandbox *s, const char *action, const struct hr_action_way *way,
    char **ret_observation, struct hr_err *err);

/* Runs a `run` action: sets *ret_exit, and appends the output to b (may be NULL). */
int hr_sandbox_run(struct hr_sandbox *s, const char *command, double timeout_s, int *ret_exit,
    struct hr_buf *b, struct hr_err *err);

/* Returns the sandbox's first directory; borrowed. */
const char *hr_sandbox_workspace(const struct hr_sandbox *s);

/* Runs a `read` or `write` action. Returns 1 with the file's content in b (may be NULL); 0 for an
 * error observation; -1 with *err set. content NULL: read. */
int hr_sandbox_file(struct hr_sandbox *s, const char *path, const char *content, struct hr_buf *b,
    struct hr_err *err);

/* Runs a command in a new shell, in the first directory; otherwise it works as hr_sandbox_run(). */
int hr_sandbox_run_static(struct hr_sandbox *s, const char *command, double timeout_s,
    int *ret_exit, struct hr_buf *b, struct hr_err *err);

#endif
