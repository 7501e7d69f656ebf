/* hr_child: manages a started process: its exit, its last output, and when it may be restarted. */
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
	bool killed;    /* a signal ended the process */
	int code;       /* exit status, or the signal's number */
	int64_t age_ms; /* how long the process lived */
};

/* Called while the process is still a zombie, so that its number, and its group's, cannot be
 * reused. The callback may free or restart the child. */
typedef void hr_child_exit_fn(void *arg, const struct hr_exit *how);
/* Parses a line that is not in handrail's own format; may be NULL. Returns the level, sets how much
 * of the line to skip, and may overwrite parts that must not be logged. */
typedef int hr_child_line_fn(void *arg, char *line, size_t len, size_t *ret_skip);

struct hr_children {
	struct hr_loop *loop;
	TAILQ_HEAD(hr_child_list, hr_child) list;
	int oom_base; /* this process's oom_score_adj at start */
};

/* A child, embedded in the owner's struct. Zero it once; then start it, again after each exit. */
struct hr_child {
	TAILQ_ENTRY(hr_child) entry;
	struct hr_children *kids;
	char name[48]; /* name in log lines */
	pid_t pid;     /* 0: the child is not running */
	int64_t since_ms;
	hr_child_exit_fn *on_exit;
	hr_child_line_fn *on_line;
	void *arg;
	int log_fd; /* read end of the child's stderr */
	struct hr_watch *log_watch;
	struct hr_buf log_line;
};

/* Initialises the list; also protects this process from the OOM killer, as far as permitted. */
void hr_children_init(struct hr_children *kids, struct hr_loop *loop);
/* Protects this process from the OOM killer, or with `on` false ends that. */
void hr_children_protect(const struct hr_children *kids, bool on);

/* Starts *what with a pipe as its stderr (added to what->fds, of which there may be 7). `oom` is
 * added to this process's initial score; the kernel refuses to lower it without privilege. The
 * caller first sets name, on_exit, on_line and arg. */
int hr_child_start(struct hr_child *c, const struct hr_spawn *what, int oom, struct hr_err *err);
/* Adopts a child of a previous image of this process; log_fd is the pipe of its stderr, -1 if
 * unknown, and taken on success. Fails if the process is not a child (any more). */
int hr_child_adopt(struct hr_child *c, pid_t pid, int log_fd, struct hr_err *err);
/* Sends a signal; no effect if the child is not running. */
void hr_child_signal(const struct hr_child *c, int sig);
/* Sends a signal to the child's group, which the child must lead. */
void hr_child_signal_group(const struct hr_child *c, int sig);

/* Reaps every dead child on SIGCHLD, also adopted orphans. */
void hr_children_reap(struct hr_children *kids);

/* Signals every child of this process, started or adopted. Returns how many there are. It reads
 * /proc; use it only for the end of the server. */
unsigned hr_children_signal_all(int sig);

/* Returns a description for a log line: "exit 1", "signal 9 (Killed)"; static. */
const char *hr_exit_text(const struct hr_exit *how);
/* Logs if a process that the server has ended died of a signal. */
void hr_child_tell_killed(const char *name, const struct hr_exit *how);

/* Delays restarts. A process that never worked restarts at once the first time, then after 50 ms,
 * 100 ms ... 10 s. A process that worked restarts at once, within a budget of 20 deaths that
 * regains 2 per second; beyond the budget it restarts after half a second. A life of a second
 * resets everything. */
struct hr_backoff {
	unsigned short_lives; /* number of consecutive lives without work */
	unsigned spent;       /* used part of the budget */
	int64_t at_ms;        /* time of the last death */
};
int64_t hr_backoff_next(struct hr_backoff *b, bool worked, int64_t age_ms, int64_t now_ms);
#define HR_BACKOFF_FAILING 5 /* number of consecutive short lives that counts as failing */

#endif
