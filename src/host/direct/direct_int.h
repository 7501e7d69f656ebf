/* Internals of hr_direct, the back-end "cli": a directory of this machine, with commands and files
 * but no server (doc/host.md, "The back-end cli"). */
#ifndef HR_HOST_DIRECT_DIRECT_INT_H
#define HR_HOST_DIRECT_DIRECT_INT_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "host/handrail-backend.h"
#include "base/strv.h"

#define HR_DIRECT_TEXT_MAX (300u << 20) /* maximum bytes of an observation */

struct hr_direct {
	const struct hr_backend_host *h;
	char *workspace; /* resolved path; NULL: not connected */
	char *named;     /* path as in the configuration */
	bool own_workspace;
	char *undo;         /* directory of the editor's history */
	struct hr_strv env; /* added variables */
	pthread_mutex_t lock;
	pid_t running; /* pid and process group of the command; 0: no command runs */
};

/* ---- clipath.c ---- */

/* Returns the local path for the agent's path: "/workspace" is the workspace, others are relative
 * to it. Links are followed, and the file need not exist. The caller frees it. Returns NULL with
 * *err: HR_E_PERMISSION for a path outside. */
char *hr_direct_path(const struct hr_direct *c, const char *path, struct hr_err *err);

/* ---- said.c: actions ---- */

/* Returns the observation, or NULL with *err set; HR_E_PERMISSION is reported to the agent. */
typedef char *hr_direct_perform_fn(void *self, struct json_object *action, struct hr_err *err);
/* Implements action() of a table; `text` is the action's JSON. */
int hr_direct_act(
    void *self, hr_direct_perform_fn *perform, const char *text, char **ret, struct hr_err *err);
/* Returns true for a member that is true or "true". */
bool hr_direct_is_true(struct json_object *o, const char *name);

/* ---- observations: JSON text owned by the caller, or NULL with *err set ---- */

char *hr_direct_error(const char *id, struct hr_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

char *hr_direct_run(struct hr_direct *c, struct json_object *action, struct hr_err *err);
int hr_direct_interrupt(void *self, int number, bool *ret, struct hr_err *err);
char *hr_direct_read(struct hr_direct *c, struct json_object *args, struct hr_err *err);
char *hr_direct_write(struct hr_direct *c, struct json_object *args, struct hr_err *err);
char *hr_direct_edit(struct hr_direct *c, struct json_object *args, struct hr_err *err);

/* ---- said.c ---- */

/* The output of a command: passed on line by line, and kept; of long output only both ends. */
struct hr_direct_said {
	const struct hr_backend_host *h;
	struct hr_buf text, line;
	bool cut; /* the middle of text was dropped */
};

void hr_direct_said_init(struct hr_direct_said *s, const struct hr_backend_host *h);
void hr_direct_said_done(struct hr_direct_said *s);
void hr_direct_said_add(struct hr_direct_said *s, const char *p, size_t n);
/* Makes the observation. timed_out_s is negative if the command did not time out. */
char *hr_direct_observe(struct hr_direct_said *s, const char *command, const char *dir, int code,
    double timed_out_s, bool hidden, struct hr_err *err);

/* ---- copy.c ---- */

int
hr_direct_copy_to(void *self, const char *from, const char *to, bool recursive, struct hr_err *err);
int hr_direct_copy_from(void *self, const char *path, char **ret_file, struct hr_err *err);
int hr_direct_list(void *self, const char *path, char **ret_json, struct hr_err *err);

#endif
