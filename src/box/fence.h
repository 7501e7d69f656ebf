/* box_fence: sets the second fence of a box, around programs whose view of files and processes is
 * already its own: system calls, capabilities, signals. */
#ifndef HR_BOX_FENCE_H
#define HR_BOX_FENCE_H

#include "base/buf.h"
#include "base/err.h"

/* Makes the filter of system calls. This takes long, so that the launcher does it while the box
 * prepares itself. Returns a file with the program, or -1 with *err. */
int box_fence_filter(struct hr_err *err);

/* Sets no_new_privs, drops capabilities, loads the filter of system calls, and Landlock's scopes
 * where the kernel has them; nothing undoes this. The caller then executes the box's program.
 * Returns 0, or -1 with *err: the caller must end then. */
int box_fence_raise(int filter, struct hr_err *err);

/* Append what this kernel enforces, and what it does not, a line each. */
void box_fence_explain(struct hr_buf *b);
void box_fence_lacks(struct hr_buf *b);

#endif
