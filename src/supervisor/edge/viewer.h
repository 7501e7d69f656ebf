/* hr_viewer: finds the place of the file viewer (doc/http.md, "The file viewer"): its own loopback
 * port, which nginx serves; the secret path below which it shows files; and the file from which the
 * shell's account reads both. */
#ifndef HR_SUPERVISOR_EDGE_VIEWER_H
#define HR_SUPERVISOR_EDGE_VIEWER_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"
#include "supervisor/run/token.h"

struct hr_rundir;
struct hr_settings;

/* workers for files that the viewer may occupy, beyond the settings' number */
#define HR_VIEWER_PLACES 4

struct hr_viewer {
	int fd;   /* listening socket; -1: there is no viewer */
	int port; /* -1: no port was free */
	char secret[HR_TOKEN_LEN + 1];
	char *file; /* file that this process has written; NULL: none */
	struct stat written;
};

/* Opens a port. If none is free there is no viewer, which is no error. Connections wait until nginx
 * runs. `handed` (-1: none) is the previous image's socket: takes ownership, and uses it if it is
 * suitable. */
void hr_viewer_open(struct hr_viewer *v, const struct hr_settings *c, int handed);
/* Chooses the secret: that of a predecessor, if the run directory still has it, or a new one. Call
 * this before the run directory is prepared. Returns 0, or -1 with *err set. */
int hr_viewer_choose(struct hr_viewer *v, const struct hr_rundir *r, struct hr_err *err);
/* Saves the secret for a successor, and writes the file, readable by `reader` only; failures are
 * only logged. */
void hr_viewer_announce(
    struct hr_viewer *v, const struct hr_rundir *r, const struct hr_settings *c, uid_t reader);
/* Closes the viewer and removes the file, unless another one has replaced it. */
void hr_viewer_close(struct hr_viewer *v);

#endif
