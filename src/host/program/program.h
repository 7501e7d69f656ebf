/* hr_program: makes the back-end of a program, exported by handrail-clouds.so for the library's
 * search (host/backends.c). */
#ifndef HR_HOST_PROGRAM_PROGRAM_H
#define HR_HOST_PROGRAM_PROGRAM_H

#include "host/handrail-backend.h"

/* Makes the table of the program `path` as the back-end `name`; its free() frees it. Returns NULL
 * if memory runs out or abi differs. Does not start the program. */
struct hr_sandbox_ops *hr_program_entry(unsigned abi, const char *name, const char *path);
/* Sends "hello" to the program. Returns 0, or -1 with the reason in *err. */
int hr_programcheck_entry(
    const char *name, const char *path, const char *const *given, struct hr_err *err);

#endif
