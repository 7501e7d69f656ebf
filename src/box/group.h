/* box_group: makes the control groups of a box: its limits, and the means to stop all of it at
 * once. */
#ifndef HR_BOX_GROUP_H
#define HR_BOX_GROUP_H

#include <stdbool.h>

#include "base/buf.h"
#include "box/spec.h"

/* The ways into the groups of a box. A process that is moved from outside waits for all processors,
 * 10 ms and more: it must be created in its group of version 2, and join those of version 1 itself.
 */
struct box_groups {
	int into;    /* directory of the group of version 2, for CLONE_INTO_CGROUP; -1: none */
	int join[4]; /* files of the groups of version 1 */
	size_t njoin;
};

/* Makes control groups "handrail/NAME" with the limits of the document. A hierarchy of version 2 is
 * used where it has the controller, else, for root, one of version 1. Fails where a limit cannot be
 * enforced; without limits a machine without control groups is no error. proc is "/proc" except in
 * tests. Appends the groups' paths to `dirs`, as the members of a JSON list: one of them freezes.
 * Returns 0, or -1 with *err; the caller calls box_group_close() and box_group_remove() in any
 * case. */
int box_group_make(const struct box_spec *s, const char *proc, bool root, struct box_groups *ret,
    struct hr_buf *dirs, struct hr_err *err);
/* Moves the calling process into the groups of version 1. Returns 0, or -1 with *err. */
int box_group_join(const struct box_groups *g, struct hr_err *err);
void box_group_close(struct box_groups *g);

/* Removes the groups of that name. Returns false if a process is still in one of them. */
bool box_group_remove(const char *name, bool root);

/* Appends a line with the control groups that this machine or the caller lacks, if there are any.
 */
void box_group_lacks(bool root, struct hr_buf *b);

#endif
