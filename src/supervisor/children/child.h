/* hr_child: one process we started: its end, its last words, and when it may be started again. */
#ifndef HR_SUPERVISOR_CHILDREN_CHILD_H
#define HR_SUPERVISOR_CHILDREN_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

struct hr_child;
struct hr_loop;
struct hr_spawn;
struct hr_watch;

struct hr_exit {
	pid_t pid;
	bool killed;    /* by a signal */
	int code;       /* exit status, or the signal */
	int64_t age_ms; /* how long it lived */
};

/* Called while the process is still a zombie, so that its number, and its group's, cannot be
 * somebody else's. The child may be freed or started again from here. */
typedef void hr_child_exit_fn(void *arg, const struct hr_exit *how);
/* Takes a line apart that is not of our own form; may be NULL. Returns the level, sets the part of
 * the line that is worth keeping, and may overwrite what is not to be logged. */
typedef int hr_child_line_fn(void *arg, char *line, size_t len, size_t *ret_skip);

struct hr_children {
	struct hr_loop *loop;
	TAILQ_HEAD(hr_child_list, hr_child) list;
	int oom_base; /* our own oom_score_adj at start */
};

/* Embedded in what the process is for. Zero it once; then start, again after each exit. */
struct hr_child {
	TAILQ_ENTRY(hr_child) entry;
	struct hr_children *kids;
	char name[48]; /* in log lines */
	pid_t pid;     /* 0: not running */
	int64_t since_ms;
	hr_child_exit_fn *on_exit;
	hr_child_line_fn *on_line;
	void *arg;
	int log_fd; /* its stderr */
	struct hr_watch *log_watch;
	struct hr_buf log_line;
};

/* Also puts ourselves out of reach of the kernel's out-of-memory choice, as far as allowed. */
void hr_children_init(struct hr_children *kids, struct hr_loop *loop);
/* That part alone, or its undoing. */
void hr_children_protect(const struct hr_children *kids, bool on);

/* Starts *what with a pipe as its stderr (added to what->fds by the callee; at most 7 of them).
 * oom: added to our own score at start; the kernel refuses to lower it without privilege. Name,
 * on_exit, on_line and arg are the caller's to fill before. */
int hr_child_start(struct hr_child *c, const struct hr_spawn *what, int oom, struct hr_err *err);
/* One of an earlier image of this process; log_fd is what it writes its stderr to, -1 if nobody
 * knows, and taken over on success. An error if it is no child of ours (any more). */
int hr_child_adopt(struct hr_child *c, pid_t pid, int log_fd, struct hr_err *err);
void hr_child_signal(const struct hr_child *c, int sig);       /* not running: nothing */
void hr_child_signal_group(const struct hr_child *c, int sig); /* it leads its group */

/* On SIGCHLD: every dead child is reaped, processes that we never started as well. */
void hr_children_reap(struct hr_children *kids);

/* Signals every process whose parent we are, started by us or not. How many there are. For the end
 * of the server only: it reads /proc. */
unsigned hr_children_signal_all(int sig);

/* The name of a way to end, for a log line: "exit 1", "signal 9 (Killed)". Static. */
const char *hr_exit_text(const struct hr_exit *how);
/* Logs that one that was told to end did so by a signal, where it did. */
void hr_child_tell_killed(const char *name, const struct hr_exit *how);

/* When to start again. One that never got to work: at once the first time, then later and later,
 * 50 ms, 100 ms ... 10 s. One that did work: at once, but for a budget of 20 deaths, of which 2
 * come back each second; beyond it, half a second. A life of a second forgives everything. */
struct hr_backoff {
	unsigned short_lives; /* in a row, without work */
	unsigned spent;       /* of the budget */
	int64_t at_ms;        /* of the last death */
};
int64_t hr_backoff_next(struct hr_backoff *b, bool worked, int64_t age_ms, int64_t now_ms);
#define HR_BACKOFF_FAILING 5 /* short lives in a row that count as "it does not work" */

#endif
