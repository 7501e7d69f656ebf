/* hr_code: serves the code interpreter (doc/e2b.md) over HTTP. */
#ifndef HR_PLUGINS_JUPYTER_CODE_H
#define HR_PLUGINS_JUPYTER_CODE_H

#include "base/err.h"

/* Serves a listening socket until SIGTERM. `envp` becomes the kernels' environment. Returns 0, or
 * -1 with *err set. */
int hr_code_serve(
    int listener, const char *state_dir, const char *python, char *const *envp, struct hr_err *err);

#endif
