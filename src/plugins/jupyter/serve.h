/* hr_serve: the plugin's loop: workers that connect, the kernel, the clock. */
#ifndef HR_PLUGINS_JUPYTER_SERVE_H
#define HR_PLUGINS_JUPYTER_SERVE_H

#include "base/err.h"
#include "plugins/jupyter/jupyter.h"

/* Serves until SIGTERM, which must be blocked; then ends the kernel. listener is the socket, ready
 * where to write that the first kernel answers, or why none does (it is closed then). -1: it never
 * did, or waiting failed. */
int hr_serve(struct hr_jupyter *j, int listener, int ready, struct hr_err *err);

#endif
