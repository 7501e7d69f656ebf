/* hr_cp: copies files into and out of a sandbox as cp(1) does: the sandbox's paths may be relative
 * to the shell's directory; an existing directory receives the source under its own name, a missing
 * target becomes it. (hr_sandbox_copy_to() and _from() copy as the original's client does, and so
 * do back-ends that copy themselves.) */
#ifndef HR_HOST_TRANSFER_CP_H
#define HR_HOST_TRANSFER_CP_H

#include "host/handrail.h"
#include "host/transfer/what.h"

/* Returns an absolute path in the sandbox, which the caller frees; NULL without memory. */
char *hr_cp_path(struct hr_sandbox *s, const char *path);

/* Finds the type of a path, relative to the back-end's directory if it is not absolute. */
int hr_cp_look(struct hr_sandbox *s, const char *path, enum hr_cp_what *ret, struct hr_err *err);

/* Copies a file, a link, or a directory with its contents. Returns 0, or -1 with *err set, also if
 * a part was left out: that is logged by name, and the rest is copied. s->keep_owner preserves
 * owners and groups, as numbers. */
int hr_cp_in(struct hr_sandbox *s, const char *from, const char *to, struct hr_err *err);
int hr_cp_out(struct hr_sandbox *s, const char *from, const char *to, struct hr_err *err);

/* Copies a file's bytes to a descriptor, or to a file from a descriptor that can be read again. An
 * existing file keeps its mode. Needs a server. */
int hr_cp_read(struct hr_sandbox *s, const char *path, int fd, struct hr_err *err);
int hr_cp_write(struct hr_sandbox *s, const char *path, int fd, struct hr_err *err);

/* Returns true if the back-end handles files itself, instead of a server. */
bool hr_cp_is_direct(const struct hr_sandbox *s);

#endif
