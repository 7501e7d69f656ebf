/* One sandbox of a program that is a back-end: its life (program.c), what is done in it (use.c). */
#ifndef HR_HOST_PROGRAM_PROGRAM_INT_H
#define HR_HOST_PROGRAM_PROGRAM_INT_H

#include "host/cloud/cloud.h"
#include "host/program/child.h"

#define HR_PROGRAM_SLOW 10 /* times the patience, for what makes a sandbox or carries a file */

struct program {
	const struct hr_cloud_ops *common;
	struct hr_cloud_ops ops; /* the same, with the program's words for itself */
	const char *lacks[2];
	struct hr_child child;
	struct hr_strv env, secrets;
	struct json_object *opening;
};

/* ---- program.c: requests ---- */

struct program *hr_program_of(struct hr_cloud *c);
/* {"sandbox": ID} and a text more; name NULL: none. The caller's; NULL with *err. */
struct json_object *
hr_program_args(struct hr_cloud *c, const char *name, const char *text, struct hr_err *err);
/* How long an answer may take, in ms. */
unsigned hr_program_patience(struct hr_cloud *c, unsigned times);
/* It runs, and said that it can. */
int
hr_program_need(struct hr_cloud *c, enum hr_program_can can, const char *what, struct hr_err *err);
/* hr_child_ask() of one that runs then. */
int hr_program_talk(struct hr_cloud *c, const struct hr_child_call *q, struct hr_child_end *ret,
    struct hr_err *err);
/* The same in short: args are taken (NULL: -1, with the error that is there), *ret_ok (may be NULL)
 * is the caller's. */
int hr_program_ask(struct hr_cloud *c, const char *op, struct json_object *args, unsigned times,
    struct json_object **ret_ok, struct hr_err *err);
/* r; of -1 the error gets the name of whose answer it is about. */
int hr_program_named(struct hr_cloud *c, int r, struct hr_err *err);

/* ---- use.c: as in struct hr_cloud_ops ---- */

int hr_program_exec(struct hr_cloud *c, const struct hr_cloud_command *q, struct hr_cloud_end *ret,
    struct hr_err *err);
int hr_program_get(struct hr_cloud *c, const char *path, struct hr_buf *b, struct hr_err *err);
int
hr_program_put(struct hr_cloud *c, const char *path, const char *p, size_t len, struct hr_err *err);
int hr_program_launch(struct hr_cloud *c, const char *line, struct hr_err *err);
int hr_program_publish(struct hr_cloud *c, int port, struct hr_err *err);
/* as in struct hr_sandbox_ops */
int hr_program_shell(void *self, const char *const *argv, int *ret_status, struct hr_err *err);

#endif
