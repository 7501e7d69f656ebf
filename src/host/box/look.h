/* hr_look: what runs in a box, seen from outside. All of it is hostile, and may end or change at
 * any time. */
#ifndef HR_HOST_BOX_LOOK_H
#define HR_HOST_BOX_LOOK_H

#include "host/box/box_int.h"

/* Adds the names of the box's processes other than the server's and the shells of sessions, each
 * once. */
int hr_look_processes(const struct hr_box *b, struct hr_strv *ret, struct hr_err *err);
/* Finds a process that has a regular file below the box's own files open for writing. Returns 0
 * with *ret_text, which names both, or NULL if there is none; or -1 with *err set. The caller
 * frees. A process that this account must not examine is skipped. */
int hr_look_written(const struct hr_box *b, char **ret_text, struct hr_err *err);

#endif
