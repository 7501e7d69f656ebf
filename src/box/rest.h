/* box_rest: may the root of a running box be exchanged under its processes? */
#ifndef HR_BOX_REST_H
#define HR_BOX_REST_H

#include <stddef.h>
#include <sys/types.h>

#include "base/err.h"

#define BOX_REST_WHY 512 /* room for every reason */

/* Examines all processes of the control group and of those below it, which the caller has frozen.
 * `first` is the first process of the box. The caller must be root, or the ordinary user of the
 * box outside of its user namespace: another process must not examine them. Returns 1 if no
 * process depends on the mount of the root: none has a file of it open, watches it or is in a
 * directory of it, except "/" and shells of sessions at their prompt, which enter theirs again.
 * Returns 0 with the reason in `why`, which is printable ASCII, or -1 with *err. */
int box_rest(const char *group, pid_t first, char *why, size_t size, struct hr_err *err);

#endif
