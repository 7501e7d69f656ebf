/* hr_cp: files in and out of a sandbox as cp(1) has it, for people: paths of the sandbox may be
 * relative, to the shell's directory; what is a directory takes what is copied under its own name,
 * what is not there becomes it. (hr_sandbox_copy_to() and _from() do as the original's client, and
 * so does what is copied into a kind that does it by itself.) */
#ifndef HR_HOST_TRANSFER_CP_H
#define HR_HOST_TRANSFER_CP_H

#include "host/handrail.h"
#include "host/transfer/what.h"

/* A path of the sandbox from its root on; the caller frees. NULL: no memory. */
char *hr_cp_path(struct hr_sandbox *s, const char *path);

/* Looks what a path is, from where this back-end has it where it is not absolute. */
int hr_cp_look(struct hr_sandbox *s, const char *path, enum hr_cp_what *ret, struct hr_err *err);

/* A file, a directory with all below it, or a link. Returns 0, or -1 with *err, also where some of
 * it was left out: that is logged by name, and the rest is there. With s->keep_owner owners and
 * groups are kept, as numbers. */
int hr_cp_in(struct hr_sandbox *s, const char *from, const char *to, struct hr_err *err);
int hr_cp_out(struct hr_sandbox *s, const char *from, const char *to, struct hr_err *err);

/* The bytes of a file of the sandbox, as they are, to a descriptor; and a file of those of a
 * descriptor that can be read again. What is there keeps its mode. Not for what has no server. */
int hr_cp_read(struct hr_sandbox *s, const char *path, int fd, struct hr_err *err);
int hr_cp_write(struct hr_sandbox *s, const char *path, int fd, struct hr_err *err);

/* The back-end does with files what a server would. */
bool hr_cp_is_direct(const struct hr_sandbox *s);

#endif
