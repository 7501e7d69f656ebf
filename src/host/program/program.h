/* The kind of a program that is a back-end: what handrail-clouds.so exports for the library's
 * search (host/backends.c). */
#ifndef HR_HOST_PROGRAM_PROGRAM_H
#define HR_HOST_PROGRAM_PROGRAM_H

#include "host/handrail-backend.h"

/* The table of the program `path` as the kind `name`; free() is for it. NULL: no memory, or abi is
 * another one. The program is not started. */
struct hr_sandbox_ops *hr_program_entry(unsigned abi, const char *name, const char *path);
/* Asks the program who it is: 0, or -1 with why it cannot be used. */
int hr_programcheck_entry(
    const char *name, const char *path, const char *const *given, struct hr_err *err);

#endif
