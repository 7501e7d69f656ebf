/* hr_jupyter: what is to be run in the kernel, one after the other, and what is done when the
 * kernel starts, hangs or dies. Knows no clients. */
#ifndef HR_PLUGINS_JUPYTER_JUPYTER_H
#define HR_PLUGINS_JUPYTER_JUPYTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/err.h"
#include "plugins/jupyter/kernel.h"
#include "proto/frame.h"

struct json_object;

/* One action. Kept for a while after its answer: the same request may come again. */
struct hr_job {
	TAILQ_ENTRY(hr_job) entry;
	char *key;
	size_t key_len; /* 0: never the same as another */
	struct json_object *action;
	const char *code; /* in action */
	size_t code_len;
	bool include_extra, limited, again;
	double timeout_s;
	char *dir; /* of the shell */
	bool done;
	struct hr_buf answer; /* the whole frame, when done */
	unsigned users;       /* who still reads the answer */
};
TAILQ_HEAD(hr_job_list, hr_job);

enum hr_jupyter_stage {
	HR_JUPYTER_NONE,    /* no kernel */
	HR_JUPYTER_ASKING,  /* it was started and has not answered */
	HR_JUPYTER_COLOURS, /* the prologue's cells */
	HR_JUPYTER_PATH,
	HR_JUPYTER_INIT,
	HR_JUPYTER_IDLE,
	HR_JUPYTER_CHDIR,   /* follows the shell */
	HR_JUPYTER_CELL,    /* the first job's own */
	HR_JUPYTER_LATE,    /* its client was answered; it was interrupted and has not ended */
	HR_JUPYTER_EXITING, /* it said that it would end */
};

struct hr_jupyter {
	struct hr_kernel kernel;
	enum hr_jupyter_stage stage;
	const char *python, *init; /* borrowed; init "": none */
	char *const *envp;
	char *path;          /* sys.executable; NULL: not known */
	char *dir;           /* the kernel was last sent there; NULL: nowhere */
	int64_t deadline_ms; /* -1: none */
	int64_t began_ms;    /* the kernel */
	bool pressed;        /* a second interrupt was sent */
	const char *lost;    /* with it the next answer says that variables are gone; NULL */
	bool exiting;
	bool was_ready;    /* a kernel has once worked */
	char failure[200]; /* why the last one did not */
	struct hr_job_list queue, old;
};

/* anew: kernels of an earlier process of ours are gone, which the first answer says. */
int hr_jupyter_init(struct hr_jupyter *j, const char *state_dir, const char *python,
    char *const *envp, const char *init, bool anew, struct hr_err *err);
void hr_jupyter_done(struct hr_jupyter *j);

/* A job for the request, or the one that it repeats; one more user of it. NULL: no memory. Answers
 * at once what cannot be run. */
struct hr_job *
hr_jupyter_submit(struct hr_jupyter *j, const struct hr_act_request *req, struct hr_err *err);
void hr_jupyter_release(struct hr_jupyter *j, struct hr_job *job); /* one user less */

/* Does what there is to do now. start: a kernel is wanted even without a job. */
void hr_jupyter_advance(struct hr_jupyter *j, bool start);
/* The sockets have something; pidfd is readable; the deadline has passed. */
void hr_jupyter_received(struct hr_jupyter *j);
void hr_jupyter_ended(struct hr_jupyter *j);
void hr_jupyter_late(struct hr_jupyter *j);

#endif
