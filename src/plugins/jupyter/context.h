/* hr_context: runs the executions of one context of the code interpreter in its own kernel, one
 * after the other. It does not know HTTP. */
#ifndef HR_PLUGINS_JUPYTER_CONTEXT_H
#define HR_PLUGINS_JUPYTER_CONTEXT_H

#include <stdbool.h>
#include <sys/queue.h>

#include "base/loop.h"
#include "base/random.h"
#include "base/strv.h"
#include "plugins/jupyter/kernel.h"

struct json_object;

struct hr_exec {
	TAILQ_ENTRY(hr_exec) entry;
	const char *code; /* borrowed; NULL: the execution only waits for the kernel */
	size_t code_len;
	struct json_object *vars; /* borrowed object of strings; NULL: none */
	/* Receives a line of output. */
	void (*line)(struct hr_exec *e, const char *p, size_t len);
	/* Ends the use of the execution. `failure`: the kernel could not be started; NULL: it
	 * could. */
	void (*end)(struct hr_exec *e, const char *failure);
	/* private: */
	struct hr_buf count; /* line that is held back until the next one */
	bool errored, again;
};
TAILQ_HEAD(hr_exec_list, hr_exec);

enum hr_context_stage {
	HR_CONTEXT_NONE,   /* there is no kernel */
	HR_CONTEXT_ASKING, /* the kernel was started, and has not replied yet */
	HR_CONTEXT_INIT,   /* the kernel runs the first cell of its language */
	HR_CONTEXT_IDLE,
	HR_CONTEXT_SETTING, /* the kernel sets an execution's variables */
	HR_CONTEXT_RUNNING,
	HR_CONTEXT_LATE,   /* the kernel was interrupted after the client had left */
	HR_CONTEXT_TAKING, /* the kernel takes an execution's variables back */
};

/* Facts that all contexts share. */
struct hr_context_host {
	struct hr_loop *loop;
	const char *python, *state_dir;
	char *const *envp; /* the kernels add the sandbox's variables */
};

struct hr_context {
	TAILQ_ENTRY(hr_context) entry;
	const struct hr_context_host *host;
	char id[HR_UUID_TEXT];
	char *language, *cwd;
	bool is_failed;  /* a new context whose kernel could not be started; to be freed */
	bool is_default; /* the context of its language for executions that name none */
	struct hr_kernel kernel;
	enum hr_context_stage stage;
	struct hr_strv env; /* the kernel's variables */
	struct hr_exec_list queue;
	struct hr_exec *running;     /* NULL: none, or its client has left */
	struct json_object *to_take; /* variables to be taken back; NULL: none */
	int64_t began_ms;            /* start of the kernel */
	bool pressed;                /* a second interrupt was sent */
	struct hr_watch *timer, *more, *ended, *readable[2];
};

/* Returns a context without a kernel; `number` is new for each. Returns NULL with *err set. */
struct hr_context *hr_context_new(const struct hr_context_host *host, unsigned number,
    const char *language, const char *cwd, struct hr_err *err);
/* Ends the kernel and all executions. NULL: no effect. */
void hr_context_free(struct hr_context *c);

/* Runs e when its turn comes; e->end() may be called at once. */
void hr_context_run(struct hr_context *c, struct hr_exec *e);
/* Replaces the kernel. The running execution ends; e, which has no code, ends with the new kernel's
 * start. */
void hr_context_restart(struct hr_context *c, struct hr_exec *e);
/* Forgets an execution, and interrupts it if it runs. Calls no function of e. */
void hr_context_leave(struct hr_context *c, struct hr_exec *e);
/* Stops or continues the output of e, whose client is slow. */
void hr_context_hold(struct hr_context *c, const struct hr_exec *e, bool hold);

#endif
