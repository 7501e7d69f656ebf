/* hr_program_int: implements a sandbox of a back-end program: its life cycle (program.c) and its
 * use (use.c). */
#ifndef HR_HOST_PROGRAM_PROGRAM_INT_H
#define HR_HOST_PROGRAM_PROGRAM_INT_H

#include "host/cloud/cloud.h"
#include "host/program/child.h"

#define HR_PROGRAM_SLOW 10 /* multiple of the patience for creating a sandbox or copying a file */

struct program {
	const struct hr_cloud_ops *common;
	struct hr_cloud_ops ops; /* copy of *common with the program's own title and limits */
	const char *lacks[2];
	struct hr_child child;
	struct hr_strv env, secrets;
	struct json_object *opening;
};

/* ---- program.c: requests ---- */

struct program *hr_program_of(struct hr_cloud *c);
/* Makes {"sandbox": ID} with one more string (name NULL: none). Returns the object, which the
 * caller owns, or NULL with *err set. */
struct json_object *
hr_program_args(struct hr_cloud *c, const char *name, const char *text, struct hr_err *err);
/* Returns the timeout of an answer in ms. */
unsigned hr_program_patience(struct hr_cloud *c, unsigned times);
/* Starts the program and checks that it has the ability. Returns 0, or -1 with *err set. */
int
hr_program_need(struct hr_cloud *c, enum hr_program_can can, const char *what, struct hr_err *err);
/* Starts the program if needed, then works like hr_child_ask(). */
int hr_program_talk(struct hr_cloud *c, const struct hr_child_call *q, struct hr_child_end *ret,
    struct hr_err *err);
/* Does the same in short: takes ownership of args (NULL: returns -1 and keeps *err); *ret_ok (may
 * be NULL) belongs to the caller. */
int hr_program_ask(struct hr_cloud *c, const char *op, struct json_object *args, unsigned times,
    struct json_object **ret_ok, struct hr_err *err);
/* Returns r; if that is -1, prefixes the error with the back-end's name. */
int hr_program_named(struct hr_cloud *c, int r, struct hr_err *err);

/* ---- use.c: functions of struct hr_cloud_ops ---- */

int hr_program_exec(struct hr_cloud *c, const struct hr_cloud_command *q, struct hr_cloud_end *ret,
    struct hr_err *err);
int hr_program_get(struct hr_cloud *c, const char *path, struct hr_buf *b, struct hr_err *err);
int
hr_program_put(struct hr_cloud *c, const char *path, const char *p, size_t len, struct hr_err *err);
int hr_program_launch(struct hr_cloud *c, const char *line, struct hr_err *err);
int hr_program_publish(struct hr_cloud *c, int port, struct hr_err *err);
/* Implements the member `shell` of struct hr_sandbox_ops. */
int hr_program_shell(void *self, const char *const *argv, int *ret_status, struct hr_err *err);

#endif
