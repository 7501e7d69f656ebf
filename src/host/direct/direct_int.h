/* What the parts of the kind "cli" share: a directory of this machine, and commands and files in it
 * without any server (doc/host.md, "The kind cli"). */
#ifndef HR_HOST_DIRECT_DIRECT_INT_H
#define HR_HOST_DIRECT_DIRECT_INT_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include <json-c/json_object.h>

#include "base/buf.h"
#include "host/handrail-backend.h"
#include "base/strv.h"

#define HR_DIRECT_TEXT_MAX (300u << 20) /* of an observation */

struct hr_direct {
	const struct hr_backend_host *h;
	char *workspace; /* with all links resolved; NULL: not connected */
	char *named;     /* as the configuration has it */
	bool own_workspace;
	char *undo;         /* directory of the editor's history */
	struct hr_strv env; /* variables that were added */
	pthread_mutex_t lock;
	pid_t running; /* the command's, and its group; 0: none */
};

/* ---- clipath.c ---- */

/* A path of the agent's on this machine: "/workspace" is the workspace, others are in it. Links are
 * followed, the file itself need not be there. The caller frees; NULL: HR_E_PERMISSION for what
 * is outside. */
char *hr_direct_path(const struct hr_direct *c, const char *path, struct hr_err *err);

/* ---- said.c: actions ---- */

/* The observation, or NULL with *err, of which HR_E_PERMISSION is told to the agent. */
typedef char *hr_direct_perform_fn(void *self, struct json_object *action, struct hr_err *err);
/* action() of a table: text is the action's. */
int hr_direct_act(
    void *self, hr_direct_perform_fn *perform, const char *text, char **ret, struct hr_err *err);
/* A member that is true, or "true". */
bool hr_direct_is_true(struct json_object *o, const char *name);

/* ---- observations; each returns the JSON text, the caller's, or NULL with *err ---- */

char *hr_direct_error(const char *id, struct hr_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

char *hr_direct_run(struct hr_direct *c, struct json_object *action, struct hr_err *err);
int hr_direct_interrupt(void *self, int number, bool *ret, struct hr_err *err);
char *hr_direct_read(struct hr_direct *c, struct json_object *args, struct hr_err *err);
char *hr_direct_write(struct hr_direct *c, struct json_object *args, struct hr_err *err);
char *hr_direct_edit(struct hr_direct *c, struct json_object *args, struct hr_err *err);

/* ---- said.c ---- */

/* What a command printed: told to whoever listens, and kept at both ends where it is long. */
struct hr_direct_said {
	const struct hr_backend_host *h;
	struct hr_buf text, line;
	bool cut; /* the middle of text is gone */
};

void hr_direct_said_init(struct hr_direct_said *s, const struct hr_backend_host *h);
void hr_direct_said_done(struct hr_direct_said *s);
void hr_direct_said_add(struct hr_direct_said *s, const char *p, size_t n);
/* timed_out_s negative: it was not ended by its time. */
char *hr_direct_observe(struct hr_direct_said *s, const char *command, const char *dir, int code,
    double timed_out_s, bool hidden, struct hr_err *err);

/* ---- copy.c ---- */

int
hr_direct_copy_to(void *self, const char *from, const char *to, bool recursive, struct hr_err *err);
int hr_direct_copy_from(void *self, const char *path, char **ret_file, struct hr_err *err);
int hr_direct_list(void *self, const char *path, char **ret_json, struct hr_err *err);

#endif
