/* hr_serve: runs the plugin's loop: workers, the kernel, the clock. */
#ifndef HR_PLUGINS_JUPYTER_SERVE_H
#define HR_PLUGINS_JUPYTER_SERVE_H

#include "base/err.h"
#include "plugins/jupyter/jupyter.h"

/* Serves until SIGTERM, which must be blocked; then ends the kernel. `ready` gets a line when the
 * first kernel works or fails, with the reason, and is then closed. Returns -1 if no kernel ever
 * worked, or waiting failed. */
int hr_serve(struct hr_jupyter *j, int listener, int ready, struct hr_err *err);

#endif
