/* hr_python: finds the interpreter that `type -P python` would print in the shell. */
#ifndef HR_SESSION_PYTHON_H
#define HR_SESSION_PYTHON_H

#include "base/buf.h"

/* Appends the path that bash finds for "python" with this PATH, byte for byte (a relative entry
 * gives a relative name), or nothing. cwd is the shell's directory, home replaces "~". This process
 * searches, with its effective rights, since a search costs a shell without handrail's builtin more
 * than the rest of its report. */
void hr_python_find(const char *path, const char *cwd, const char *home, struct hr_buf *out);

#endif
