/* hr_reexec: an upgrade in place: the same process goes on as another image of the program.
 *
 * What must not be lost meanwhile is handed over by descriptor (hr_handover): every listening
 * socket, so that no connection is refused, the scoreboard with the workers, which go on to serve
 * until there are new ones, and keys that came by the environment. The shell is adopted as after
 * the death of a predecessor. nginx serves until its successor is about to start. */
#ifndef HR_SUPERVISOR_REEXEC_H
#define HR_SUPERVISOR_REEXEC_H

#include <limits.h>
#include <signal.h>
#include <stdbool.h>

#include "base/err.h"
#include "supervisor/run/handover.h"

struct hr_server;
struct hr_watch;

struct hr_reexec {
	char program[PATH_MAX];
	char **argv;               /* as given; the words are borrowed */
	struct hr_handover handed; /* by the image before us */
	struct hr_watch *turn;
	unsigned turns; /* of the loop, until we go; meanwhile no signal is caught */
	sigset_t mask;  /* for after that, if we stay */
};

/* First of all in main(): remembers how we were started (argv is copied, as parsing changes it),
 * takes what a predecessor handed over, and closes every other descriptor above 2. */
int hr_reexec_begin(struct hr_server *s, char *const *argv, struct hr_err *err);

/* The TCP socket that was handed over, if it is the one that the settings ask for; else -1. */
int hr_reexec_listener(struct hr_server *s);

/* At SIGUSR2, when nothing is under way that another image could not go on with: nginx starts, a
 * shell starts, an alert_command or a worker waits for us. */
bool hr_reexec_may(const struct hr_server *s);
/* Then: asks the new image first whether it can use the settings, and stays as it is with a word in
 * the log if not. A signal that has come is acted on before, one that comes is the next image's. */
void hr_reexec_soon(struct hr_server *s);

void hr_reexec_done(struct hr_reexec *r);

#endif
