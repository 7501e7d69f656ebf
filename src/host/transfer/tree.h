/* hr_treecopy: copies files, directories and links between this machine and a sandbox whose server
 * has /handrail/v1/pack; preserves modes, times and links. */
#ifndef HR_HOST_TRANSFER_TREE_H
#define HR_HOST_TRANSFER_TREE_H

#include "files/archive/tree.h"
#include "host/handle.h"
#include "host/transfer/what.h"

/* Checks an absolute path of the sandbox. Returns 1 with *ret set, 0 if the server lacks the
 * endpoint, or -1 with *err set. */
int
hr_treecopy_look(struct hr_sandbox *s, const char *path, enum hr_cp_what *ret, struct hr_err *err);

/* Copies `from` to `to`; the sandbox's path must be absolute. Returns 0, or -1 with *err set, also
 * if a part was left out, which is logged by name. */
int hr_treecopy_in(struct hr_sandbox *s, const char *from, const char *to, struct hr_err *err);
int hr_treecopy_out(struct hr_sandbox *s, const char *from, const char *to, struct hr_err *err);

#endif
