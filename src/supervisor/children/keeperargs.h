/* hr_keeper_args: composes the start of handrail-session (proto/PROTOCOL). */
#ifndef HR_SUPERVISOR_CHILDREN_KEEPERARGS_H
#define HR_SUPERVISOR_CHILDREN_KEEPERARGS_H

#include <stdbool.h>
#include <sys/types.h>
#include <stddef.h>

#include "base/err.h"

struct hr_child;
struct hr_context;

#define HR_KEEPER_ARGS 48
#define HR_KEEPER_SOCKET_FD 4 /* the socket's descriptor in the keeper */
#define HR_KEEPER_STORE_FD 5  /* the first of the store's two ends; the second follows */

struct hr_keeper_args {
	/* NULL-terminated; owned by the members below, or borrowed */
	const char *v[HR_KEEPER_ARGS];
	size_t n;
	char *path, *state_dir, *cd, *line;
	char timeout[24], memory[24], processes[24], files[24], oom[24], log[24];
};

/* Fills a. `name` is also the directory's name below DIR/shell; `dir` is the directory in which the
 * shell starts. A default session gets init commands, a static one serves one connection. Call
 * hr_keeper_args_done() also after a failure. */
int hr_keeper_args_init(struct hr_keeper_args *a, const struct hr_context *ctx, const char *name,
    const char *dir, bool is_static, struct hr_err *err);
void hr_keeper_args_done(struct hr_keeper_args *a);

/* Makes the state directory and starts the program with these descriptors. store NULL: there is no
 * store. forked() is called as in base/process/spawn.h. */
int hr_keeper_spawn(const struct hr_context *ctx, struct hr_child *c,
    const struct hr_keeper_args *a, int ready, int sock, const int store[2],
    void (*forked)(void *arg, pid_t pid), void *arg, struct hr_err *err);

/* Returns "cd 'dir'" for bash, whatever bytes dir holds; the caller frees it. Returns NULL without
 * memory. */
char *hr_keeper_cd(const char *dir);

#endif
