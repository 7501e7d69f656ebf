/* hr_cp_list: lists a directory of a sandbox. */
#ifndef HR_HOST_TRANSFER_LIST_H
#define HR_HOST_TRANSFER_LIST_H

#include "base/strv.h"
#include "host/handrail.h"

/* Appends the names in a directory, of any bytes; those of directories end with a slash, and a link
 * is not followed if the server has /handrail/v1/files. For a file appends `path` itself, which may
 * be relative to the shell's directory. Names that the server cannot send are counted in a note.
 * Returns 0, or -1 with *err set to HR_E_NOTFOUND or another code. */
int hr_cp_list(struct hr_sandbox *s, const char *path, struct hr_strv *ret, struct hr_err *err);

#endif
