/* hr_serve: runs the plugin's loop: workers, the kernel, the clock. */
#ifndef HR_PLUGINS_JUPYTER_SERVE_H
#define HR_PLUGINS_JUPYTER_SERVE_H

#include "base/err.h"
#include "plugins/jupyter/jupyter.h"

/* arguments of the program that serves the code interpreter: the socket is its descriptor 3 */
#define HR_SERVE_CODE "--code"
#define HR_SERVE_CODE_FD 3

/* Serves until SIGTERM, which must be blocked; then ends the kernel. `ready` gets a line when the
 * first kernel works or fails, with the reason, and is then closed. If only `http` has a connection
 * at the start, `ready` gets its line at once, and the first job starts the kernel. A connection to
 * `http` starts the process of the code interpreter. Returns -1 if no kernel ever worked, or
 * waiting failed. */
int hr_serve(struct hr_jupyter *j, int listener, int http, int ready, struct hr_err *err);

#endif
