/* hr_viewer: where the file viewer listens (doc/http.md, "The file viewer"): a port of its own, on
 * loopback, which nginx serves; and the file that tells it to whoever wants to look at something.
 * */
#ifndef HR_SUPERVISOR_EDGE_VIEWER_H
#define HR_SUPERVISOR_EDGE_VIEWER_H

#include "base/err.h"

struct hr_settings;

#define HR_VIEWER_PLACES 4 /* workers for files that it may hold, beyond those of the settings */

struct hr_viewer {
	int fd;   /* listening; -1: there is no viewer */
	int port; /* -1: none was free */
};

/* Takes a port and writes the file; that it cannot be written is only logged. Without a free port
 * there is no viewer, which is no error. Whoever connects waits until nginx runs. handed (-1:
 * none): the socket of the image before us, which stays if it could be ours; it is taken over. */
void hr_viewer_open(struct hr_viewer *v, const struct hr_settings *c, int handed);
void hr_viewer_close(struct hr_viewer *v);

#endif
