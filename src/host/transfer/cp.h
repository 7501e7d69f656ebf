/* hr_cp: files in and out of a sandbox as cp(1) has it, for people: paths of the sandbox may be
 * relative, to the shell's directory; what is a directory takes what is copied under its own name,
 * what is not there becomes it. (hr_sandbox_copy_to() and _from() do as the original's client, and
 * so does what is copied into a kind that does it by itself.) */
#ifndef HR_HOST_TRANSFER_CP_H
#define HR_HOST_TRANSFER_CP_H

#include "host/handrail.h"

/* A path of the sandbox from its root on; the caller frees. NULL: no memory. */
char *hr_cp_path(struct hr_sandbox *s, const char *path);

/* What a path is, from where this kind has it where it is not absolute. HR_CP_UNKNOWN: the server
 * cannot say. */
enum hr_cp_what { HR_CP_NOTHING, HR_CP_FILE, HR_CP_DIRECTORY, HR_CP_UNKNOWN };
int hr_cp_look(struct hr_sandbox *s, const char *path, enum hr_cp_what *ret, struct hr_err *err);

/* A file or a directory with all below it. */
int hr_cp_in(struct hr_sandbox *s, const char *from, const char *to, struct hr_err *err);
int hr_cp_out(struct hr_sandbox *s, const char *from, const char *to, struct hr_err *err);

#endif
