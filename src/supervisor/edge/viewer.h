/* hr_viewer: where the file viewer listens (doc/http.md, "The file viewer"): a port of its own, on
 * loopback, which nginx serves; the secret path below which it shows files; and the file from which
 * the shell's account learns both. */
#ifndef HR_SUPERVISOR_EDGE_VIEWER_H
#define HR_SUPERVISOR_EDGE_VIEWER_H

#include <sys/stat.h>
#include <sys/types.h>

#include "base/err.h"
#include "supervisor/run/token.h"

struct hr_rundir;
struct hr_settings;

#define HR_VIEWER_PLACES 4 /* workers for files that it may hold, beyond those of the settings */

struct hr_viewer {
	int fd;   /* listening; -1: there is no viewer */
	int port; /* -1: none was free */
	char secret[HR_TOKEN_LEN + 1];
	char *file; /* as it was written by this process; NULL: it was not */
	struct stat written;
};

/* Takes a port. Without a free port there is no viewer, which is no error. Whoever connects waits
 * until nginx runs. handed (-1: none): the socket of the image before us, which stays if it could
 * be ours; it is taken over. */
void hr_viewer_open(struct hr_viewer *v, const struct hr_settings *c, int handed);
/* Chooses the secret, before the run directory is made ready: a predecessor's in it, or a new one.
 * Returns 0, or -1 with *err set. */
int hr_viewer_choose(struct hr_viewer *v, const struct hr_rundir *r, struct hr_err *err);
/* Keeps the secret for a successor, and writes the file for `reader` alone; that this cannot be
 * done is only logged. */
void hr_viewer_announce(
    struct hr_viewer *v, const struct hr_rundir *r, const struct hr_settings *c, uid_t reader);
/* Removes the file, too, unless another one is there by now. */
void hr_viewer_close(struct hr_viewer *v);

#endif
