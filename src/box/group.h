/* box_group: makes the control groups of a box: its limits, and the means to stop all of it at
 * once. */
#ifndef HR_BOX_GROUP_H
#define HR_BOX_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "box/spec.h"

/* Puts process `pid` into new control groups "handrail/NAME" with the limits of the document. A
 * hierarchy of version 2 is used where it has the controller, else, for root, one of version 1.
 * Fails where a limit cannot be enforced; without limits a machine without control groups is no
 * error. proc is "/proc" except in tests. Appends the groups' paths to `dirs`, as the members of a
 * JSON list: one of them freezes. Returns 0, or -1 with *err: the caller ends the process and calls
 * box_group_remove(). */
int box_group_make(const struct box_spec *s, const char *proc, bool root, pid_t pid,
    struct hr_buf *dirs, struct hr_err *err);

/* Removes the groups of that name. Processes must have left them. */
void box_group_remove(const char *name, bool root);

/* Appends a line with the control groups that this machine or the caller lacks, if there are any.
 */
void box_group_lacks(bool root, struct hr_buf *b);

#endif
