/* hr_box_fork: branches of a running box, with its files, its settings and the state of its shells.
 * Their files are copied below the parent's directory first, where the next fork removes those of a
 * killed one; no branch is recorded before that is done. */
#ifndef HR_HOST_BOX_FORK_H
#define HR_HOST_BOX_FORK_H

#include "host/handle.h"

#define HR_BOX_FORK_MAX 1000

struct hr_box_fork {
	const char *name; /* name of the branch; with a count its start, before "-1" */
	unsigned count;   /* 0: one branch, without a number */
	/* names of all branches, in the place of the two above; NULL: those */
	const char *const *names;
	bool freeze; /* copy although a command runs or a file is open for writing */
};

/* Forks a connected box, in a process without other threads. *ret_json is the answer, which the
 * caller frees: {"sandbox": NAME, "branches": [NAME], "still": BOOLEAN, "sessions": [NAME],
 * "not_copied": [{"what": TEXT, "names": [TEXT]}]}. Returns 0, or -1 with *err set and no branch
 * left. */
int hr_box_fork(
    struct hr_sandbox *s, const struct hr_box_fork *how, char **ret_json, struct hr_err *err);

#endif
