/* hr_confine: sets the limits of a shell and of all its processes (the control groups that the
 * shell joins, and resource limits for the rest), and reports their effects on a command. */
#ifndef HR_SESSION_CONFINE_H
#define HR_SESSION_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define HR_CONFINE_GROUPS 3 /* memory, pids and cpu are separate directories in version 1 */

struct hr_confine {
	const char *groups[HR_CONFINE_GROUPS]; /* directories created by the supervisor */
	size_t ngroups;
	uint64_t memory, processes, files; /* RLIMIT_AS, _NPROC, _NOFILE; 0: unchanged */
	bool no_new_privileges;
	unsigned oom_score; /* 0: the keeper's score */
	/* state of the groups when last read, and whether a rise has yet to be reported */
	struct hr_confine_counter {
		int fd[HR_CONFINE_GROUPS]; /* -1: none */
		uint64_t last[HR_CONFINE_GROUPS];
		bool earlier; /* rose before the command started */
	} kills, refusals;
	bool looking;
};

/* Joins the groups. Runs in the child between fork and exec, with the keeper's identity: only
 * system calls. Ignores failures: a shell without a limit is better than none. When all memory runs
 * out the kernel kills the shell's processes before the keeper. */
void hr_confine_enter(const struct hr_confine *c);
/* Sets the resource limits, after the child has taken the user's identity: the kernel counts
 * processes by user. */
void hr_confine_limit(const struct hr_confine *c);

/* Marks the start of a command: earlier events are not due to it. */
void hr_confine_begin(struct hr_confine *c);

/* Appends lines for an observation on kills and refusals by the kernel since the start of the
 * command, or earlier ones not yet reported; usually nothing. c NULL: there are no limits. dir: the
 * shell's directory, whose disk may be full; NULL: not checked. */
void hr_confine_why(struct hr_confine *c, const char *dir, struct hr_buf *out);

#endif
