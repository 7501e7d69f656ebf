/* hr_look: what runs in a box, seen from outside. All of it is hostile, and may end or change at
 * any time. */
#ifndef HR_HOST_BOX_LOOK_H
#define HR_HOST_BOX_LOOK_H

#include "host/box/box_int.h"

/* Adds the names of the box's processes other than the server's and the shells of sessions, each
 * once. Unless `ret_written` is NULL, *ret_written becomes a string that names a process that has a
 * regular file below the box's own files open for writing, and the file, or NULL if there is none;
 * the caller frees. A process that this account must not examine is skipped. Returns 0, or -1 with
 * *err set. */
int hr_look(const struct hr_box *b, struct hr_strv *ret, char **ret_written, struct hr_err *err);

#endif
