/* hr_reexec: an upgrade in place: the same process goes on as another image of the program.
 *
 * What must not be lost meanwhile is handed over by descriptor: the TCP socket, so that no
 * connection is refused, and keys that came by the environment. All else is found as after the
 * death of a predecessor: the shell is adopted, workers and nginx end after what they have in hand
 * and new ones, of the new build, take their place. */
#ifndef HR_SUPERVISOR_REEXEC_H
#define HR_SUPERVISOR_REEXEC_H

#include <limits.h>

#include "base/err.h"

struct hr_server;

struct hr_reexec {
	char program[PATH_MAX];
	char **argv; /* as given; the words are borrowed */
};

/* First of all in main(): remembers how we were started (argv is copied, as parsing changes it),
 * takes what a predecessor handed over into s, and closes every other descriptor above 2. */
int hr_reexec_begin(struct hr_server *s, char *const *argv, struct hr_err *err);

/* The listening socket that was handed over, if it is the one that the settings ask for; else it is
 * closed and there is none. */
void hr_reexec_check_listener(struct hr_server *s);

/* At SIGUSR2. Asks the new image first whether it can use the settings. Returns only if it stays
 * as it was, with the reason. */
void hr_reexec_go(struct hr_server *s, struct hr_err *err);

void hr_reexec_done(struct hr_reexec *r);

#endif
