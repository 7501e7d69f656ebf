/* hr_python: the interpreter that `type -P python` would name in the shell. */
#ifndef HR_SESSION_PYTHON_H
#define HR_SESSION_PYTHON_H

#include "base/buf.h"

/* Appends what bash finds as "python" with this PATH, word for word (an entry that is relative
 * gives a relative name); nothing if there is none. cwd is the shell's directory, home stands for
 * "~". Looked up by us, since it costs a shell without our builtin more than the rest of its
 * report; with our effective rights. */
void hr_python_find(const char *path, const char *cwd, const char *home, struct hr_buf *out);

#endif
