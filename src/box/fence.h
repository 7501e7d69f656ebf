/* box_fence: sets the second fence of a box, around programs whose view of files and processes is
 * already its own: system calls, capabilities, signals. */
#ifndef HR_BOX_FENCE_H
#define HR_BOX_FENCE_H

#include "base/buf.h"
#include "base/err.h"

/* Sets no_new_privs, drops capabilities, loads the filter of system calls (mkfilter.c), and
 * Landlock's scopes where the kernel has them; nothing undoes this. The caller then executes the
 * box's program. Returns 0, or -1 with *err: the caller must end then. */
int box_fence_raise(struct hr_err *err);

/* Append what this kernel enforces, and what it does not, a line each. */
void box_fence_explain(struct hr_buf *b);
void box_fence_lacks(struct hr_buf *b);

#endif
