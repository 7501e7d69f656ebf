/* hr_jupyter: runs jobs in the kernel, one after the other, and handles a kernel that starts, hangs
 * or dies. It does not know the clients. */
#ifndef HR_PLUGINS_JUPYTER_JUPYTER_H
#define HR_PLUGINS_JUPYTER_JUPYTER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/buf.h"
#include "base/err.h"
#include "plugins/jupyter/kernel.h"
#include "plugins/jupyter/recent.h"
#include "proto/frame.h"

struct json_object;

/* An action. It is kept for a while after its answer, since the same request may be repeated. */
struct hr_job {
	TAILQ_ENTRY(hr_job) entry;
	char *key;      /* NULL: a list of cells, which is freed after its answer */
	size_t key_len; /* 0: never equal to the key of another job */
	struct json_object *action;
	const char *code; /* points into action */
	size_t code_len;
	bool include_extra, limited, again;
	double timeout_s;
	uint64_t cell; /* number of its cell in `recent`; 0: not started */
	char *dir;     /* the shell's directory */
	bool done;
	struct hr_buf answer; /* the whole frame, if the job is done */
	unsigned users;       /* number of clients reading the answer */
};
TAILQ_HEAD(hr_job_list, hr_job);

enum hr_jupyter_stage {
	HR_JUPYTER_NONE,    /* there is no kernel */
	HR_JUPYTER_ASKING,  /* the kernel was started, and has not replied yet */
	HR_JUPYTER_COLOURS, /* the kernel runs the prologue's cells */
	HR_JUPYTER_PATH,
	HR_JUPYTER_INIT,
	HR_JUPYTER_IDLE,
	HR_JUPYTER_CHDIR, /* the kernel changes to the shell's directory */
	HR_JUPYTER_CELL,  /* the kernel runs the first job's own cell */
	/* the kernel was interrupted after its client was answered, and the cell has not ended
	 * yet */
	HR_JUPYTER_LATE,
	HR_JUPYTER_EXITING, /* the kernel announced its exit */
};

struct hr_jupyter {
	struct hr_kernel kernel;
	enum hr_jupyter_stage stage;
	const char *python, *init; /* borrowed; init "": there is none */
	char *const *envp;
	char *path;          /* sys.executable; NULL: unknown */
	char *dir;           /* last directory set in the kernel; NULL: none */
	int64_t deadline_ms; /* as hr_now_ms() counts; -1: none */
	int64_t began_ms;    /* start of the kernel */
	bool pressed;        /* a second interrupt was sent */
	const char *lost;    /* note about lost variables for the next answer; NULL: none */
	bool exiting;
	bool was_ready;    /* some kernel has worked */
	char failure[200]; /* why the last kernel failed */
	struct hr_job_list queue, old;
	struct hr_recent recent;
};

/* Initialises j. The flag before err means that an earlier process lost its kernels; the first
 * answer reports that. */
int hr_jupyter_init(struct hr_jupyter *j, const char *state_dir, const char *python,
    char *const *envp, const char *init, bool anew, struct hr_err *err);
void hr_jupyter_done(struct hr_jupyter *j);

/* Returns a job for the request, or the one that it repeats, and adds a user. Returns NULL without
 * memory. Answers at once if the request cannot be run. */
struct hr_job *
hr_jupyter_submit(struct hr_jupyter *j, const struct hr_act_request *req, struct hr_err *err);
/* Returns a finished job whose answer is the list of the last cells (doc/live.md), with one user.
 * Returns NULL without memory. */
struct hr_job *hr_jupyter_list(struct hr_jupyter *j, struct hr_err *err);
void hr_jupyter_release(struct hr_jupyter *j, struct hr_job *job); /* Removes a user. */

/* Performs the work due now. With `start` it starts a kernel even without a job. */
void hr_jupyter_advance(struct hr_jupyter *j, bool start);
/* Handles events: the sockets are readable; pidfd is readable; the deadline has passed. */
void hr_jupyter_received(struct hr_jupyter *j);
void hr_jupyter_ended(struct hr_jupyter *j);
void hr_jupyter_late(struct hr_jupyter *j);

#endif
