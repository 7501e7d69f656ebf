/* hr_confine: the limits of a shell and of all that it starts: control groups that it joins,
 * resource limits for what no group limits; and what became of a command because of them. */
#ifndef HR_SESSION_CONFINE_H
#define HR_SESSION_CONFINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define HR_CONFINE_GROUPS 3 /* memory, pids and cpu are directories of their own in version 1 */

struct hr_confine {
	const char *groups[HR_CONFINE_GROUPS]; /* directories, made by the supervisor */
	size_t ngroups;
	uint64_t memory, processes, files; /* RLIMIT_AS, _NPROC, _NOFILE; 0: as they are */
	bool no_new_privileges;
	unsigned oom_score; /* 0: the keeper's */
	/* of the groups, at the last look, and since when something is owed to who asks next */
	struct hr_confine_counter {
		int fd[HR_CONFINE_GROUPS]; /* -1: it has none */
		uint64_t last[HR_CONFINE_GROUPS];
		bool earlier; /* it rose before the command began */
	} kills, refusals;
	bool looking;
};

/* In the child between fork and exec, while it is still who the keeper is: only system calls. What
 * cannot be done is left: a shell without a limit is better than none. When memory runs out for
 * all, what the shell runs is ended before the keeper is. */
void hr_confine_enter(const struct hr_confine *c);
/* The same, after it has become the shell's user: counts of processes are counted by user. */
void hr_confine_limit(const struct hr_confine *c);

/* A command begins: what was done before is none of its doing. */
void hr_confine_begin(struct hr_confine *c);

/* What the kernel did since then, or before it and nobody was told, as further lines for an
 * observation; nothing is the usual case. c: NULL: no limits. dir: the shell's directory, asked
 * whether its disk is full; NULL: not asked. */
void hr_confine_why(struct hr_confine *c, const char *dir, struct hr_buf *out);

#endif
