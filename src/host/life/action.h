/* Actions of our own in a sandbox. */
#ifndef HR_HOST_LIFE_ACTION_H
#define HR_HOST_LIFE_ACTION_H

#include "host/handle.h"

/* hr_sandbox_action() by a request whose name is known, so that it can be found among the commands
 * of a shell, and which is given up when a descriptor is readable (what it began goes on). */
struct hr_action_way {
	const char *id; /* X-Request-ID */
	int cancel_fd;
};
int hr_sandbox_action_as(struct hr_sandbox *s, const char *action, const struct hr_action_way *way,
    char **ret_observation, struct hr_err *err);

/* A `run` action of our own: *ret_exit, and the output in b (may be NULL). */
int hr_sandbox_run(struct hr_sandbox *s, const char *command, double timeout_s, int *ret_exit,
    struct hr_buf *b, struct hr_err *err);

/* Its first directory; borrowed. */
const char *hr_sandbox_workspace(const struct hr_sandbox *s);

/* A `read` or `write` action: 1 done, the file's content in b (may be NULL); 0 an error
 * observation; -1 *err. content: NULL to read. */
int hr_sandbox_file(struct hr_sandbox *s, const char *path, const char *content, struct hr_buf *b,
    struct hr_err *err);

/* The same in a shell of its own, in the first directory. */
int hr_sandbox_run_static(struct hr_sandbox *s, const char *command, double timeout_s,
    int *ret_exit, struct hr_buf *b, struct hr_err *err);

#endif
