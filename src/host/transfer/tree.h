/* hr_treecopy: copies of files, directories and links between this machine and a sandbox whose
 * server has /handrail/v1/pack, which keep modes, times and links. */
#ifndef HR_HOST_TRANSFER_TREE_H
#define HR_HOST_TRANSFER_TREE_H

#include "files/archive/tree.h"
#include "host/handle.h"
#include "host/transfer/what.h"

/* Looks at an absolute path of the sandbox: 1 and *ret; 0: its server does not know the endpoint;
 * -1: *err. */
int
hr_treecopy_look(struct hr_sandbox *s, const char *path, enum hr_cp_what *ret, struct hr_err *err);

/* `from` becomes `to`, which is absolute where it is of the sandbox. Returns 0, or -1 with *err,
 * also if a part was left out, which is logged by name. */
int hr_treecopy_in(struct hr_sandbox *s, const char *from, const char *to, struct hr_err *err);
int hr_treecopy_out(struct hr_sandbox *s, const char *from, const char *to, struct hr_err *err);

#endif
