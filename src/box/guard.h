/* box_guard: runs a process outside the box that lives as long as the box. It holds the lock of the
 * storage, and ends the box if the launcher is killed. */
#ifndef HR_BOX_GUARD_H
#define HR_BOX_GUARD_H

#include <sys/types.h>

#include "base/err.h"

/* Work for the guard: returns 0, or -1 with *err. */
typedef int box_guard_fn(const void *arg, struct hr_err *err);

struct box_guard {
	/* descriptor of the storage; the guard has a copy, so that the lock outlives the
	 * launcher */
	int lock;
	int tie;   /* the launcher's socket to the guard; -1: no guard was started */
	pid_t pid; /* pid of the guard, a child of the launcher */
};

/* Locks a storage. Waits two seconds for an earlier box, whose guard may be about to end. Returns
 * 0, or -1 with *err, HR_E_BUSY if a box uses it. Release *g with box_guard_end() in any case. */
int box_guard_lock(struct box_guard *g, const char *storage, struct hr_err *err);

/* Starts the guard, before control groups are made and the box's first process is. The guard calls
 * fn(arg) first, while the launcher does its own work. If the launcher ends without
 * box_guard_leave(), the guard kills the first process and removes the control groups of `name`.
 * Returns 0, or -1 with *err. */
int box_guard_start(
    struct box_guard *g, const char *name, box_guard_fn *fn, const void *arg, struct hr_err *err);

/* Waits until fn() has returned in the guard. Returns its result; call it once. */
int box_guard_wait(const struct box_guard *g, struct hr_err *err);

/* Passes the pidfd of the first process to the guard. That process must end by itself if the
 * launcher ends before. Returns 0, or -1 with *err. */
int box_guard_watch(const struct box_guard *g, int pidfd, struct hr_err *err);

/* Lets the box outlive the launcher. Returns 0, or -1 with *err. */
int box_guard_leave(struct box_guard *g, struct hr_err *err);

/* Waits for the end of the guard of an ended box, and releases the storage. After
 * box_guard_leave() the guard keeps it until the box ends, and the call does not wait. */
void box_guard_end(struct box_guard *g);

#endif
